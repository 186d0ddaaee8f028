"""Monotonic hard attention of order one: how far to go on depends on where the last token was.

  p(a_t = k + d | a_{t-1} = k) = softmax_d(h_t W_q + annotation_k W_k + b),  0 <= d <= max_jump

Jumps beyond the end of the source are left out of the softmax. The first token is written from a
jump away from the first slot. Scores of attention have no part in it.
"""

import dataclasses
from typing import Any

from attention_jax.configuration import setting
from attention_jax.layers.alignment import Alignment
from attention_jax.layers.mechanism import described
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.readout import ReadoutSizes, Step
from attention_jax.ops.lattices import RELATIVE_JUMPS, Transition
from attention_jax.ops.summation import upcast
from attention_jax.types import Array, Params

PAPER = (
    "Wu and Cotterell (2019), Exact hard monotonic attention, of order one; with the sizes and the "
    "first slot of its program"
)


@dataclasses.dataclass(frozen=True)
class Config:
    """Monotonic alignments by relative jumps.

    Attributes:
      name: The alignment.
      max_jump: The longest jump, in slots. The window of the paper's program, of 11 slots around
        the last one, is 5: monotonic paths use its later half.
    """

    name: str = setting("relative_jumps")
    max_jump: int = setting(5, at_least=1)


def build(config: Config, sizes: ReadoutSizes) -> "RelativeJumps":
    """Builds the alignment.

    Raises:
      ValueError: If there is attention beside it, which would learn nothing.
    """
    if sizes.mechanism.traits.reads_query:
        raise ValueError(
            "attention.name: expected 'none' beside readout.alignment.name='relative_jumps', which "
            f"does without its scores, found {described(sizes.attention)}"
        )
    return RelativeJumps(config.max_jump + 1, sizes.feature_dim, sizes.memory_dim)


@dataclasses.dataclass(frozen=True)
class RelativeJumps(Alignment):
    """Relative jumps as pure functions.

    Attributes:
      num_jumps: How many jumps there are, none included.
      feature_dim: Depth of the decoder's features.
      annotation_dim: Depth of an annotation.
    """

    num_jumps: int
    feature_dim: int
    annotation_dim: int
    transition: Transition = RELATIVE_JUMPS

    @property
    def parameters(self) -> dict[str, Parameter]:
        """What scores jumps of the features and of where a path is."""
        number = self.num_jumps
        return {
            "features": Parameter.of("kernel", features=self.feature_dim, positions=number),
            "annotation": Parameter.of("kernel", annotation=self.annotation_dim, positions=number),
            "bias": Parameter.of("bias", positions=number),
        }

    def prepare(self, params: Params, annotations: Array) -> Array:
        """Returns the slots' part of the scores, `B S J`."""
        return upcast(annotations @ params["annotation"]) + upcast(params["bias"])

    def moves(self, params: Params, step: Step, prepared: Any, mask: Array) -> Array:
        """Returns the scores of jumps from each slot, `*B S J`."""
        # *B J -> *B 1 J, beside the slots' part *B S J.
        return upcast(step.features @ params["features"])[..., None, :] + prepared
