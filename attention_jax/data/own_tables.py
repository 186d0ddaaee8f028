"""Tables of the user's own: a file for each split, or examples that are held out of the training's.

What rows are is the data set's to say; here they are examples already.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from attention_jax.configuration import setting
from attention_jax.data.builders.splitting import hold_out
from attention_jax.data.config import Corpus

_HELD_OUT = ("validation", "test")


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnTables:
    """Where the examples of a data set of the user's own are; part of a `DataConfig`.

    Attributes:
      train_table: File of training examples.
      validation_table: Of those for validation; without a file, some of the training's are held
        out.
      validation_examples: How many to hold out where validation has no file, at most a tenth.
      test_table: As above, for the test split.
      test_examples: As above, where the test split has no file.
    """

    train_table: str = setting("", is_file=True)
    validation_table: str = setting("", is_file=True)
    validation_examples: int = setting(1000, at_least=1)
    test_table: str = setting("", is_file=True)
    test_examples: int = setting(1000, at_least=1)

    def __post_init__(self):
        if not self.train_table:
            raise ValueError("train_table: expected a file, found none")

    def files(self, split: str) -> tuple[str, ...]:
        """Returns the path of a split's file; an empty one where there is none."""
        return (getattr(self, f"{split}_table"),)

    def read(self, read: Callable[[str], Sequence[tuple[Any, ...]]]) -> Corpus:
        """Returns the examples of every split.

        What is held out is chosen by a hash of the source, all outputs of a source together.

        Args:
          read: Reads a file.

        Raises:
          DataError: As `read`, and if there are too few sources to hold any out.
        """
        train, others = list(read(self.train_table)), {}
        for split in _HELD_OUT:
            (path,) = self.files(split)
            if path:
                others[split] = read(path)
                continue
            count = getattr(self, f"{split}_examples")
            others[split], train = hold_out(
                train, split, count, self.train_table, lowercase=self.lowercase
            )
        return {"train": train, **others}
