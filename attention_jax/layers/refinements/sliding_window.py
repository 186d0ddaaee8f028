"""Sliding window: each position attends to those near it only, at a cost that is linear.

  position t attends to t - size + 1 .. t, and where nothing is causal to t + size - 1 as well;
  and to 0 .. num_first - 1, as far as these are not further ahead

Queries are answered in blocks, which share the slots that any of them may read; see `ops.bands`.
"""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.refinement import Head, RefinementConfig
from attention_jax.ops.bands import Band

PAPER = (
    "Beltagy, Peters and Cohan (2020), Longformer, section 3.1; Xiao et al. (2024), Efficient "
    "streaming language models, section 3.2, for the first positions"
)
_MOST = 2**30  # such that the width of a window to both sides is an int32


@dataclasses.dataclass(frozen=True)
class Config(RefinementConfig):
    """A sliding window.

    Attributes:
      size: How many positions it reaches back, the present one included.
      num_first: How many positions at the beginning everything may attend to as well (4 in Xiao
        et al., whose distances are those in their cache, and here those in the sequence).
    """

    size: int = setting(64, at_least=1, at_most=_MOST)
    num_first: int = setting(0, at_least=0, at_most=_MOST)
    order: ClassVar[int] = 80
    is_positional: ClassVar[bool] = True


def refine(config: Config, parts: MechanismParts, head: Head) -> MechanismParts:
    """Sets the band; raises `ValueError` if the score has a window of its own."""
    if parts.spec.pattern is not None:
        raise ValueError(
            "attention.refinements: expected a score over all slots for 'sliding_window', found "
            "one with a window of its own"
        )
    is_causal = head.place == "causal"
    band = Band(config.size - 1, 0 if is_causal else config.size - 1, config.num_first)
    return parts._replace(spec=dataclasses.replace(parts.spec, pattern=band))
