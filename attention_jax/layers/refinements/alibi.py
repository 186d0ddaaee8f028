"""Attention with linear biases: scores fall with distance, in each head at another slope.

  scores[t, s] = score(query[t], keys[s]) - slope[h] |t - s|
"""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.refinement import Head, RefinementConfig, change_score
from attention_jax.ops.positions import alibi_slopes, slot_offsets
from attention_jax.types import Array, Memory, Params

PAPER = (
    "Press, Smith and Lewis (2022), section 3; distances count both ways where nothing is causal"
)


@dataclasses.dataclass(frozen=True)
class Config(RefinementConfig):
    """Linear biases.

    Attributes:
      steepness: The last of n heads, where n is a power of two, has the slope 2^-steepness, the
        others lie evenly between that and 1 in their exponents (8 in the paper); of other numbers
        see `ops.positions.alibi_slopes`.
    """

    steepness: float = setting(8.0, above=0.0)
    order: ClassVar[int] = 50
    is_positional: ClassVar[bool] = True


def refine(config: Config, parts: MechanismParts, head: Head) -> MechanismParts:
    """Adds the biases."""
    # NumPy: a jax array would be put on a device already when the model is built.
    slopes = alibi_slopes(head.num_heads, config.steepness)

    def score(
        params: Params, scores: Array, query: Array, memory: Memory, positions: Array
    ) -> Array:
        slope = jnp.asarray(slopes, scores.dtype)[head.index()]
        return scores - slope * jnp.abs(slot_offsets(memory, positions))

    return change_score(parts, score)
