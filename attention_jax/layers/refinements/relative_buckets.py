"""Buckets of relative positions: a bias of scores for each range of distances, in each head.

  scores[t, s] = score(query[t], keys[s]) + bias[h, bucket(s - t)]

All layers of a stack have the same biases.
"""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.refinement import Head, RefinementConfig, change_score
from attention_jax.ops.positions import relative_buckets, slot_offsets
from attention_jax.ops.summation import upcast
from attention_jax.types import Array, Memory, Params

PAPER = "Raffel et al. (2020), section 2.1"


@dataclasses.dataclass(frozen=True)
class Config(RefinementConfig):
    """Relative position buckets; see `ops.positions.relative_buckets`.

    Attributes:
      num_buckets: How many there are; where nothing is causal, half of them are for what follows.
      max_distance: Distances from it on are in the last bucket.
    """

    num_buckets: int = setting(32, at_least=4)
    max_distance: int = setting(128, at_least=2)
    order: ClassVar[int] = 45
    is_positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Rejects buckets that no distance falls into."""
        if self.max_distance <= self.num_buckets // 2:
            raise ValueError(
                f"max_distance: expected more than half of num_buckets ({self.num_buckets}), found "
                f"{self.max_distance}"
            )


def refine(config: Config, parts: MechanismParts, head: Head) -> MechanismParts:
    """Adds the biases."""
    reach = config.max_distance
    # NumPy: a jax array would be put on a device already when the model is built.
    buckets = relative_buckets(config.num_buckets, reach, both_ways=head.place != "causal")

    def score(
        params: Params, scores: Array, query: Array, memory: Memory, positions: Array
    ) -> Array:
        bias = upcast(params["bucket_bias"])[buckets]  # of each offset from -reach on
        return scores + bias[jnp.clip(slot_offsets(memory, positions), -reach, reach) + reach]

    # Not zeros: without them, positions would be alike at first.
    bias = Parameter.of("embedding", positions=config.num_buckets).shared("layers")
    return change_score(parts, score, bucket_bias=bias)
