"""Parallel text of the user's own, as two files or one table: the data set `parallel`."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from attention_jax.configuration import NamedConfigs, setting
from attention_jax.data.config import TextLines
from attention_jax.data.further_sources import SeveralSourcesConfig

_SPLITS = ("train", "validation", "test")


@dataclasses.dataclass(frozen=True)
class FurtherFiles:
    """A further source: for each split that has files, one with a line for each of its pairs.

    A line may be empty: that source then tells nothing of its pair.

    Attributes:
      train: Beside the training pairs.
      validation: Beside the validation pairs.
      test: Beside the test pairs.
    """

    train: str = setting("", is_file=True)
    validation: str = setting("", is_file=True)
    test: str = setting("", is_file=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(SeveralSourcesConfig):
    """The user's own parallel text: for each split two files, or one tab-separated table.

    Further fields are those of `data.further_sources.SeveralSourcesConfig`.

    Attributes:
      further: Files of further sources by name, each a source of that name for the model.
      train_source: File of training sources, one a line.
      train_target: File of their translations.
      train_table: Instead of both, a file of `source<TAB>target` lines.
      validation_source: As above, for validation; without files, training pairs are held out.
      validation_target: As above.
      validation_table: As above.
      validation_pairs: How many pairs to hold out if validation has no files, at most a tenth of
        the text. Lines that are often repeated stay in training; see `held_out_sources`.
      test_source: As above, for the test split.
      test_target: As above.
      test_table: As above.
      test_pairs: As above, if the test split has no files.
    """

    name: str = setting("parallel", choices=("parallel",))
    train_source: str = setting("", is_file=True)
    train_target: str = setting("", is_file=True)
    train_table: str = setting("", is_file=True)
    validation_source: str = setting("", is_file=True)
    validation_target: str = setting("", is_file=True)
    validation_table: str = setting("", is_file=True)
    validation_pairs: int = setting(1000, at_least=1)
    test_source: str = setting("", is_file=True)
    test_target: str = setting("", is_file=True)
    test_table: str = setting("", is_file=True)
    test_pairs: int = setting(1000, at_least=1)
    further: Mapping[str, FurtherFiles] = dataclasses.field(default_factory=NamedConfigs)

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "further", NamedConfigs(self.further))
        self.check_further_sources()
        for split in _SPLITS:
            source, target, table = self.files(split)
            if table and (source or target):
                raise ValueError(f"{split}_table: expected either a table or two files, found both")
            if bool(source) != bool(target):
                missing = f"{split}_target" if source else f"{split}_source"
                raise ValueError(f"{missing}: expected a file, found none")
            if split == "train" and not (table or source):
                raise ValueError(
                    "train_source: expected a file (with train_target), or train_table; found none"
                )
            for name, files in self.further.items():
                path = getattr(files, split)
                if bool(path) != bool(table or source):
                    wanted = "none, as pairs are held out" if path else "a file, as its pairs have"
                    raise ValueError(
                        f"further.{name}.{split}: expected {wanted}, found {path or 'none'}"
                    )

    @property
    def further_sources(self) -> tuple[str, ...]:
        return tuple(self.further)

    def files(self, split: str) -> tuple[str, str, str]:
        """Returns the paths of a split, (source, target, table); empty if not given."""
        return tuple(getattr(self, f"{split}_{part}") for part in ("source", "target", "table"))

    def builder_config(self) -> Any:
        return self.builder.parallel_text(
            self._corpus("train"),
            validation=self._corpus("validation"),
            test=self._corpus("test"),
            validation_pairs=self.validation_pairs,
            test_pairs=self.test_pairs,
            lowercase=self.lowercase,
        )

    def training_lines(self) -> TextLines:
        config = self.builder_config()
        return TextLines(config.train.source, *self.builder.training_lines(config))

    def count_unusable(self) -> int:
        return self.builder.count_unusable(self._corpus("train"))

    def _corpus(self, split: str) -> Any:
        source, target, table = self.files(split)
        if not (table or source):
            return None
        further = tuple((name, getattr(files, split)) for name, files in self.further.items())
        return self.builder.Corpus(table or source, target, further)
