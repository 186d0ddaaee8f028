"""Luong's concat score: a hidden layer over the concatenation of query and key.

  scores[t, s] = vector . tanh(kernel^T [query[t]; keys[s]])

The same function as additive attention, with the two matrices in one; they are applied apart, the
key's half once for a source.
"""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismConfig, MechanismParts
from attention_jax.layers.normalizer import NORMALIZERS
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.scores import additive_scores
from attention_jax.types import Array, Memory, Params, State

PAPER = "Luong, Pham and Manning (2015), section 3.1, below eq. 7 (concat)"


@dataclasses.dataclass(frozen=True)
class Config(MechanismConfig):
    """Concat attention.

    Attributes:
      name: The mechanism.
      attention_dim: Depth of the hidden layer of each head.
      num_heads: How many heads attend side by side.
      normalizer: From scores to weights.
    """

    name: str = setting("luong_concat")
    attention_dim: int = setting(256, at_least=1)
    num_heads: int = setting(1, at_least=1)
    normalizer: str = setting("softmax", choices=NORMALIZERS)
    tells_key_bias: ClassVar[bool] = True


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds concat attention for queries and keys of the given depths."""
    depth = config.attention_dim
    parameters = {
        # One matrix, as in the paper: its initialization depends on the joint fan-in.
        "kernel": Parameter.of(
            "attention_kernel", query_key=query_dim + key_dim, attention=depth
        ),
        "vector": Parameter.of("attention_vector", attention=depth),
    }

    def prepare(params: Params, memory: Memory, positions: Array) -> Memory:
        return dataclasses.replace(memory, keys=memory.keys @ params["kernel"][query_dim:])

    def score(
        params: Params, query: Array, memory: Memory, state: State, positions: Array
    ) -> Array:
        projected = query @ params["kernel"][:query_dim]  # the upper rows; keys had the lower
        return additive_scores(projected, memory.keys, params["vector"])

    return MechanismParts(
        AttentionSpec(score, NORMALIZERS[config.normalizer], prepare=prepare), parameters
    )
