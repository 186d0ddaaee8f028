"""Fields: the arrays of a batch, each with where its values are from and how they are padded."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from attention_jax.data.batch_plan import FILLER
from attention_jax.types import SpecialIds

SOURCE_AXIS, TARGET_AXIS = "S", "T"


def fill(array: np.ndarray, row: int, value: Any) -> None:
    """Writes a value into the beginning of a row, along every axis."""
    array[(row, *map(slice, np.shape(value)))] = value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Field:
    """One array of a batch: a value for each of its examples, padded to one shape.

    Attributes:
      name: Its key in a batch.
      axes: Of one value: `S` and `T` are as long as the batch's sources and targets, which are
        measured by the first field that begins with that axis; another name is as long as the
        longest value of all; a number is a size. Without axes, a value is a number.
      values: From examples to a value for each; None where the examples carry them in `extras`.
      dtype: Of the array.
      padding: What stands where there is no value.
      mask: Key of a second array, True where a value goes along its first axis; None for none.
      write: Writes a value into its row of the array, which holds padding before.
      fingerprint: What of a value belongs to the hash of the data; None where that is told by the
        texts, or kept by itself.
      is_input: Whether it is known before the output is, so that a search may read it.
      is_text: Whether its values are the token ids of the examples' texts.
    """

    name: str
    axes: tuple[str | int, ...] = ()
    values: Callable[[Any], Sequence[Any]] | None = None
    dtype: type = np.int32
    padding: Any = 0
    mask: str | None = None
    write: Callable[[np.ndarray, int, Any], None] = fill
    fingerprint: Callable[[Any], bytes] | None = None
    is_input: bool = False
    is_text: bool = False

    def __post_init__(self):
        if self.mask is not None and not self.axes:
            raise ValueError(f"field {self.name}: expected an axis for the mask {self.mask!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of a batch that it fills."""
        return (self.name,) if self.mask is None else (self.name, self.mask)

    def collate(
        self,
        values: Sequence[Any],
        indices: Int[np.ndarray, " B"],
        lengths: Mapping[str, int],
    ) -> dict[str, np.ndarray]:
        """Pads the values of a batch: the array, and its mask if it has one.

        Args:
          values: Of all examples.
          indices: Which of them the rows are; `FILLER` for rows of padding.
          lengths: Of the axes that have a name.
        """
        sizes = [axis if isinstance(axis, int) else lengths[axis] for axis in self.axes]
        array = np.full((len(indices), *sizes), self.padding, self.dtype)
        mask = np.zeros(array.shape[:2], bool)
        for row, index in enumerate(indices):
            if index != FILLER:
                self.write(array, row, values[index])
                if self.mask is not None:
                    mask[row, : len(values[index])] = True
        return {self.name: array} if self.mask is None else {self.name: array, self.mask: mask}


def _tokens(name: str, axis: str, *, is_input: bool) -> Field:
    return Field(
        name=name, axes=(axis,), values=lambda examples: examples.ids(name),
        padding=SpecialIds.PAD, mask=f"{name}_mask", is_input=is_input,
        is_text=True,
    )  # fmt: skip


# Token ids of a text, ending in EOS. A prompt is how an output begins.
SOURCE = _tokens("source", SOURCE_AXIS, is_input=True)
TARGET = _tokens("target", TARGET_AXIS, is_input=False)
PROMPT = _tokens("prompt", SOURCE_AXIS, is_input=True)
