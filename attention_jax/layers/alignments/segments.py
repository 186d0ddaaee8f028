"""Segment to segment transduction: read on, or write from the slot that has been read.

  p(a_t = i | a_{t-1} = k) = e[t, i] prod_{k <= j < i} (1 - e[t, j]),  i >= k
  e[t, i] = sigmoid(scores[t, i] + b)

The scores of attention are those of a gate, whether to write at a slot; with additive attention,
that is the hidden layer of the paper. Each slot may write several tokens, or none. EOS is written
from the last slot, when all has been read, and from no other.
"""

import dataclasses
from typing import Any

from attention_jax.configuration import setting
from attention_jax.layers.alignment import ScoredAlignment, check_scores
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.readout import ReadoutSizes, Step
from attention_jax.ops.lattices import SEGMENTS, Gates, emission_gates
from attention_jax.ops.summation import upcast
from attention_jax.types import Array, Params

PAPER = "Yu, Buys and Blunsom (2016), Online segment to segment neural transduction"


@dataclasses.dataclass(frozen=True)
class Config:
    """Alignments of segments.

    Attributes:
      name: The alignment.
    """

    name: str = setting("segments")


def build(config: Config, sizes: ReadoutSizes) -> "Segments":
    """Builds the alignment; raises `ValueError` if attention has more than plain scores."""
    check_scores(sizes, config.name)
    return Segments(SEGMENTS)


class Segments(ScoredAlignment):
    """Segments as pure functions."""

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The bias of all gates."""
        return {"gate_bias": Parameter.of("bias")}

    def moves(self, params: Params, step: Step, prepared: Any, mask: Array) -> Gates:
        """Returns the gates of each slot."""
        return emission_gates(self.scores(step) + upcast(params["gate_bias"]), mask)
