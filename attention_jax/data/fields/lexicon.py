"""Rows of the lexicon as a field: what each source token may be translated by.

Two arrays `B S K`: `lexicon`, int32 target ids, and `lexicon_probs`, float32, their probabilities.
K is the same in all batches (`data.lexicon.size`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from attention_jax.data.batch_plan import FILLER
from attention_jax.data.examples import Examples
from attention_jax.data.field import SOURCE_AXIS, Field, fill
from attention_jax.data.lexicon import LEXICON, LexiconRows, lexicon_of
from attention_jax.types import SpecialIds

PROBS = f"{LEXICON}_probs"


class LexiconField(Field):
    """Field of two arrays, which are looked up for a batch, as they are large."""

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of a batch under which the arrays are."""
        return self.name, PROBS

    def collate(
        self,
        values: Sequence[Any],
        indices: Int[np.ndarray, " B"],
        lengths: Mapping[str, int],
    ) -> dict[str, np.ndarray]:
        """Padding: collates the rows of a batch; see `Field.collate`."""
        shape = len(indices), lengths[SOURCE_AXIS], values.lexicon.ids.shape[1]
        ids = np.full(shape, SpecialIds.PAD, np.int32)
        probs = np.zeros(shape, np.float32)
        for row, index in enumerate(indices):
            if index != FILLER:
                for array, value in zip((ids, probs), values[index], strict=True):
                    fill(array, row, value)
        return {self.name: ids, PROBS: probs}


def _rows(examples: Examples) -> LexiconRows:
    return LexiconRows(examples.ids("source"), lexicon_of(examples.resources))


# The lexicon is kept with the vocabularies, whose hash is recorded; texts say the rest.
FIELD = LexiconField(name=LEXICON, axes=(SOURCE_AXIS,), values=_rows, is_input=True)
