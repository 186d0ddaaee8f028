"""Parallel text of the user's own, as two files or one table: the data set `parallel`."""

import dataclasses
from typing import Any

from attention_jax.configuration import setting
from attention_jax.data.config import TextLines, TranslationConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(TranslationConfig):
    """The user's own parallel text: for each split two files, or one tab-separated table.

    Attributes:
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

    def __post_init__(self):
        super().__post_init__()
        for split in ("train", "validation", "test"):
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
        return self.builder.Corpus(table or source, target) if table or source else None
