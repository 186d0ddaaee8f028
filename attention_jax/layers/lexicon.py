"""Lexicon readouts: what the attended source tokens may be translated by, beside the softmax.

  p_lex(v | t) = sum_s a_t,s p(v | x_s)

A batch brings the rows of the lexicon for its own source tokens; see `data/fields/lexicon.py`.
Where rows leave something of a token's probability over, `p_lex` sums to less than one.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.readout import Readout, ReadoutSizes, Step
from attention_jax.layers.readouts.softmax import SoftmaxReadout
from attention_jax.ops.spans import to_positions
from attention_jax.ops.summation import upcast
from attention_jax.types import Array, Batch, Params

LEXICON_IDS, LEXICON_PROBS = "lexicon", "lexicon_probs"


def checked_sizes(name: str, sizes: ReadoutSizes) -> ReadoutSizes:
    """Returns the sizes of a readout that reads a lexicon.

    Raises:
      ValueError: If the decoder does not say which source tokens it attends to.
    """
    mechanism = sizes.mechanism
    if mechanism is None or not mechanism.traits.is_alignment:
        found = "no source" if mechanism is None else f"attention.name={sizes.attention.name!r}"
        raise ValueError(
            f"readout.name: expected a model that attends to source tokens for {name!r}, found "
            f"{found}"
        )
    return sizes


@dataclasses.dataclass(frozen=True)
class LexiconReadout(Readout):
    """Lexicon readout: the softmax's parameters, and the expected row of the lexicon.

    Attributes:
      sizes: What it fits.
    """

    sizes: ReadoutSizes
    fields: ClassVar[tuple[str, ...]] = (LEXICON_IDS, LEXICON_PROBS)

    @property
    def softmax(self) -> SoftmaxReadout:
        """The readout whose distribution is changed."""
        return SoftmaxReadout(self.sizes)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Those of the softmax."""
        return self.softmax.parameters

    def prepare(self, params: Params, encoded: Encoded, batch: Batch) -> Mapping[str, Any]:
        """Returns the rows of the lexicon, the slots, and the positions that these stand for."""
        source = {
            "ids": batch[LEXICON_IDS], "probs": upcast(batch[LEXICON_PROBS]), "slots": encoded.mask
        }  # fmt: skip
        return source if encoded.spans is None else {**source, "spans": encoded.spans}

    def translations(self, step: Step) -> tuple[Array, Array]:
        """Returns p_lex in parts: `*B N`, the weight of each entry, and `B 1 N`, its target id."""
        ids, probs = step.source["ids"], step.source["probs"]  # B 1 S K
        slots = step.source["slots"].shape[-1]
        # Slots of further sources stand behind those of the first one, which has the lexicon.
        weights = step.attention.weights[..., :slots]
        if "spans" in step.source:
            weights = to_positions(weights, step.source["spans"][:, 0], ids.shape[2])
        entries = weights[..., None] * probs  # B T S K
        number = ids.shape[2] * ids.shape[3]
        return entries.reshape(*weights.shape[:-1], number), ids.reshape(*ids.shape[:2], number)
