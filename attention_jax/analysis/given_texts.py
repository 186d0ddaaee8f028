"""Given texts: sources and references of one's own, on which a trained run is evaluated."""

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Self

from attention_jax.data.lines import read_lines, read_pairs
from attention_jax.data.loading import TaskData
from attention_jax.decoding.scoring import given_pairs
from attention_jax.errors import DataError, UserError
from attention_jax.files import cut_name
from attention_jax.objectives import Objective
from attention_jax.runs.load import TrainedRun

_LONGEST_NAME = 100


def divide_sources(
    given: Sequence[str], names: Collection[str]
) -> tuple[list[str], dict[str, str]]:
    """Divides what `--source` gives into files, and `NAME=FILE` by the names of further sources.

    Raises:
      UserError: If a name is given twice.
    """
    plain, named = [], {}
    for text in given:
        name, _, path = text.partition("=")
        if not (path and name in names):
            plain.append(text)
        elif name in named:
            raise UserError(f"--source: expected NAME=FILE, each name once, found {text!r}")
        else:
            named[name] = path
    return plain, named


@dataclasses.dataclass(frozen=True)
class GivenTexts:
    """Texts that belong to no run, as their files have them: the same for all that are compared.

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
        if cut_name(self.name, _LONGEST_NAME) != self.name:
            raise UserError(
                f"--name: expected at most {_LONGEST_NAME} bytes of UTF-8, for names of files have "
                f"it in them, found {len(self.name.encode())}"
            )

    @classmethod
    def read(
        cls,
        run: TrainedRun,
        sources: Sequence[str],
        target: str | None,
        name: str | None = None,
        others: Collection[str] = (),
    ) -> Self:
        """Reads files of lines, or of what else a task's texts are, such as names of recordings.

        Args:
          run: The run, which says what it reads.
          sources: The file of its source, and `NAME=FILE` for each further one.
          target: The file of references.
          name: What to call them; the first file's name up to its first full stop, if not given.
          others: Names of further sources that are read by runs beside it.

        Raises:
          UserError: If a file is missing, cannot be read, or they have other numbers of lines.
        """
        plain, named = divide_sources(sources, {*run.further_sources, *others})
        further = {name: read_lines(path) for name, path in named.items()}
        if not target:
            raise UserError("--target: expected the references of --source, found none")
        if len(plain) != (0 if run.task.continues else 1):
            wanted = "none for a language model" if run.task.continues else "one file"
            raise UserError(f"--source: expected {wanted}, found {', '.join(plain) or 'none'}")
        alone = [("", text) for text in ([] if plain else read_lines(target))]
        pairs = read_pairs(plain[0], target) if plain else alone
        stem = Path(plain[0] if plain else target).name.partition(".")[0]
        name = name or cut_name(re.sub(r"[^\w-]+", "_", stem), _LONGEST_NAME) or "given"
        return cls(name, [text for text, _ in pairs], [text for _, text in pairs], further)

    def swapped(self) -> Self:
        """Returns the texts of the opposite direction, beside the same further sources."""
        return dataclasses.replace(self, sources=self.targets, targets=self.sources)

    def read_by(self, run: TrainedRun) -> Self:
        """Returns the texts without those that only other runs read."""
        read = {name: texts for name, texts in self.further.items() if name in run.further_sources}
        return dataclasses.replace(self, further=read)

    def data(self, run: TrainedRun) -> TaskData:
        """Returns the texts as data of a run, in its own form, with one split.

        Raises:
          DataError: If there are none, they are not of the sources that the run reads or do not fit
            its task, or its targets are more than texts tell.
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
