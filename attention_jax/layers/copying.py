"""Copying readouts: what those share that write the source's own words, beside the vocabulary's.

A batch then has two more fields: `extended_source` (`B S`, the ids of the source's words in the
extended vocabulary, 0 where nothing can be copied) and `unknown_words` (`B X`, of which the shape
counts: how many words there are ids for beyond the vocabulary).
"""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from attention_jax.layers.encoder import Encoded
from attention_jax.layers.mechanism import described
from attention_jax.layers.readout import Readout, ReadoutSizes, Step
from attention_jax.layers.readouts.softmax import SoftmaxReadout
from attention_jax.ops.copying import CopyingPredictions
from attention_jax.types import Array, Batch, Params, SpecialIds

WORDS, UNKNOWN = FIELDS = "extended_source", "unknown_words"


def check_copying(name: str, sizes: ReadoutSizes) -> None:
    """Raises `ValueError` where a readout of this name would not know what it copies.

    Raises:
      ValueError: If there is no source, several, or one whose slots are no single tokens; or if the
        attention does not say which of them it has read.
    """
    if sizes.mechanism is None:
        raise ValueError(f"readout.name: expected a model with a source for {name!r}, found none")
    if sizes.slot_symbols is None:
        raise ValueError(
            f"readout.name: expected one source of tokens, each with a slot of its own, for "
            f"{name!r}, found another"
        )
    if not sizes.mechanism.traits.is_alignment:
        raise ValueError(
            f"attention.name: expected one whose weights say what has been read, for the readout "
            f"{name!r}, found {described(sizes.attention)}"
        )


@dataclasses.dataclass(frozen=True)
class CopyingReadout(Readout):
    """A readout that generates by a softmax, or copies from the source.

    Attributes:
      sizes: What it fits.
    """

    sizes: ReadoutSizes
    fields = FIELDS
    provides = ("origins",)

    @property
    def generating(self) -> SoftmaxReadout:
        """The softmax over the vocabulary."""
        return SoftmaxReadout(self.sizes)

    @abc.abstractmethod
    def divide(self, params: Params, step: Step, logits: Array) -> tuple[Array, Array]:
        """Returns (log p(generate) `*B`, log p(copy from slot s) `*B S`)."""

    def predict(self, params: Params, step: Step) -> CopyingPredictions:
        """Returns the distribution of each next token, over the extended vocabulary."""
        logits = self.generating.predict(params, step).logits
        ways = self.divide(params, step, logits)
        return CopyingPredictions(logits, *ways, step.source[WORDS], step.source[UNKNOWN])

    def prepare(self, params: Params, encoded: Encoded, batch: Batch) -> Mapping[str, Any]:
        """Returns the ids of what may be copied."""
        words = jnp.where(encoded.mask, batch[WORDS], SpecialIds.PAD)
        return {WORDS: words, UNKNOWN: batch[UNKNOWN]}

    def input_ids(self, tokens: Array) -> Array:
        """Returns UNK for words beyond the vocabulary, which have no embedding."""
        return jnp.where(tokens < self.sizes.vocabulary_size, tokens, SpecialIds.UNK)
