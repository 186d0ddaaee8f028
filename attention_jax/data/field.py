"""Fields: the arrays of a batch, with the origin of their values and their padding."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from attention_jax.data.batch_plan import FILLER
from attention_jax.types import SpecialIds

SOURCE_AXIS, TARGET_AXIS = "S", "T"


def fill(array: np.ndarray, row: int, value: Any) -> None:
    """Padding: writes a value into the beginning of a row along every axis; the rest stays."""
    # row, then `:n` for each axis of the value, none for a number
    array[(row, *map(slice, np.shape(value)))] = value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Field:
    """Field: one array of a batch, with a value for each example, padded to one shape.

    Attributes:
      name: Its key in a batch.
      axes: The axes of one value. `S` and `T` are as long as the batch's sources and targets, which
        are measured by the first field whose first axis it is, and by further texts; any other name
        is as long as the longest value in the data; a number is a size. Without axes, a value is a
        number.
      values: Function from examples to their values; None if examples have them in `extras`.
      dtype: Type of the array.
      padding: Value of the padding.
      mask: Key of a second array, True where the value's first axis is not padding; or None.
      write: Function that writes a value into its row of the array, until then all padding.
      fingerprint: Function from a value to the bytes that the hash of the data includes; None if
        the texts determine the value, or it is recorded separately.
      is_input: Whether it is known before the output is, so that a search may read it.
      is_text: Whether its values are the token ids of the examples' texts.
      extends_targets: Whether targets beside it have ids beyond the vocabulary, for words of their
        sources; see `data.text.extended_vocabulary`.
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
    extends_targets: bool = False

    def __post_init__(self):
        if self.mask is not None and not self.axes:
            raise ValueError(f"field {self.name}: expected an axis for the mask {self.mask!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of a batch under which its arrays are."""
        return (self.name,) if self.mask is None else (self.name, self.mask)

    def collate(
        self,
        values: Sequence[Any],
        indices: Int[np.ndarray, " B"],
        lengths: Mapping[str, int],
    ) -> dict[str, np.ndarray]:
        """Padding: collates the values of a batch into an array, and its mask if it has one.

        Args:
          values: The values of all examples.
          indices: The examples of the rows; `FILLER` for rows of padding.
          lengths: Lengths of the named axes.
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


# Token ids of a text, ending in EOS. A prompt is the beginning of an output.
SOURCE = _tokens("source", SOURCE_AXIS, is_input=True)
TARGET = _tokens("target", TARGET_AXIS, is_input=False)
PROMPT = _tokens("prompt", SOURCE_AXIS, is_input=True)
