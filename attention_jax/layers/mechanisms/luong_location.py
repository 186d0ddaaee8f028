"""Luong's location score: where to attend is read off the query alone.

  scores[t, s] = (kernel^T query[t])[s]

There is one column for each source position up to `max_positions`; positions beyond get no weight.
"""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismConfig, MechanismParts
from attention_jax.layers.normalizer import NORMALIZERS
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.scores import location_scores
from attention_jax.types import Array, Memory, Params, State

PAPER = "Luong, Pham and Manning (2015), section 3.1, eq. 8 (location)"


@dataclasses.dataclass(frozen=True)
class Config(MechanismConfig):
    """Location-based attention.

    Attributes:
      name: The mechanism.
      max_positions: How many source positions can be attended to.
      num_heads: How many heads attend side by side.
      normalizer: From scores to weights.
    """

    name: str = setting("luong_location")
    max_positions: int = setting(64, at_least=1)
    num_heads: int = setting(1, at_least=1)
    normalizer: str = setting("softmax", choices=NORMALIZERS)
    reads_keys: ClassVar[bool] = False


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds location-based attention for queries of the given depth."""
    kernel = Parameter.of("attention_kernel", query=query_dim, positions=config.max_positions)
    return MechanismParts(AttentionSpec(_score, NORMALIZERS[config.normalizer]), {"kernel": kernel})


def _score(params: Params, query: Array, memory: Memory, state: State, positions: Array) -> Array:
    # Inside a window there are no positions: its slots are counted from the window's start.
    size, places = memory.mask.shape[-1], memory.aux.get("positions")
    return location_scores(query, params["kernel"], size, places)
