"""Given texts: sources and references of one's own, on which a trained run is evaluated."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from attention_jax.data.lines import read_lines, read_pairs
from attention_jax.data.loading import TaskData
from attention_jax.decoding.scoring import given_pairs
from attention_jax.errors import DataError, UserError
from attention_jax.objectives import Objective
from attention_jax.runs.load import TrainedRun


@dataclasses.dataclass(frozen=True)
class GivenTexts:
    """Texts that belong to no run: the same ones for every run that is compared.

    Attributes:
      name: What results call them, as they call splits of a run's own data; letters, digits,
        underscores and hyphens.
      sources: The sources, empty ones for a language model.
      targets: The reference of each.
      further: Texts of each further source, by its name.
    """

    name: str
    sources: Sequence[str]
    targets: Sequence[str]
    further: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        if not re.fullmatch(r"[\w-]+", self.name):
            raise UserError(
                f"--name: expected letters, digits, underscores and hyphens, found {self.name!r}"
            )

    @classmethod
    def read(
        cls, run: TrainedRun, sources: Sequence[str], target: str | None, name: str | None = None
    ) -> Self:
        """Reads files of lines, or of what else a task's texts are, such as names of recordings.

        Args:
          run: The run, which says what it reads.
          sources: The file of its source, and `NAME=FILE` for each further one.
          target: The file of references.
          name: What to call them; the first file's name up to its first full stop, if not given.

        Raises:
          UserError: If a file is missing, cannot be read, or they have other numbers of lines.
        """
        known = run.further_sources
        named = [text.partition("=") for text in sources]
        further = {key: read_lines(path) for key, _, path in named if path and key in known}
        plain = [
            text
            for text, (key, _, path) in zip(sources, named, strict=True)
            if not (path and key in known)
        ]
        if not target:
            raise UserError("--target: expected the references of --source, found none")
        if len(plain) != (0 if run.task.continues else 1):
            wanted = "none for a language model" if run.task.continues else "one file"
            raise UserError(f"--source: expected {wanted}, found {', '.join(plain) or 'none'}")
        alone = [("", text) for text in ([] if plain else read_lines(target))]
        pairs = read_pairs(plain[0], target) if plain else alone
        stem = Path(plain[0] if plain else target).name.partition(".")[0]
        name = name or re.sub(r"[^\w-]+", "_", stem) or "given"
        return cls(name, [text for text, _ in pairs], [text for _, text in pairs], further)

    def swapped(self) -> Self:
        """Returns the texts of the opposite direction."""
        return dataclasses.replace(self, sources=self.targets, targets=self.sources, further={})

    def data(self, run: TrainedRun) -> TaskData:
        """Returns the texts as data of a run, with one split.

        Raises:
          DataError: If there are none, they do not fit the run's task, or its targets are more than
            texts tell.
        """
        if getattr(run.config.data, "oracle_steps", "none") != "none":
            raise DataError(
                "--target: expected a run whose targets are texts, found one whose targets have "
                "STEPs, which are told by aligning the training text"
            )
        if not self.targets:
            raise DataError(f"{self.name}: expected texts to evaluate, found none")
        split = dataclasses.replace(
            given_pairs(run, self.sources, self.targets, self.further), name=self.name
        )
        vocabularies = run.source_vocabulary, run.target_vocabulary
        task = TaskData(run.task, *vocabularies, {self.name: split}, num_training_pairs=0)
        return task.with_fields(Objective(run.config.objectives).fields.union(run.model.fields))
