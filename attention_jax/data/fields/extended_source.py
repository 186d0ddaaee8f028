"""The source in the extended vocabulary of its outputs, as a field: what may be copied, `B S`."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from attention_jax.data.examples import Examples
from attention_jax.data.field import SOURCE_AXIS, Field
from attention_jax.data.text.extended_vocabulary import check_can_copy, source_in_outputs
from attention_jax.types import SpecialIds


def _ids(examples: Examples) -> Sequence[Int[np.ndarray, " _"]]:
    """Finds the id that each token of a source has in outputs."""
    vocabularies = examples.source_vocabulary, examples.target_vocabulary
    check_can_copy(*vocabularies)
    return [source_in_outputs(*vocabularies, text) for text in examples.sources]


FIELD = Field(
    name="extended_source", axes=(SOURCE_AXIS,), values=_ids, padding=SpecialIds.PAD, is_input=True,
    extends_targets=True,
)  # fmt: skip
