"""Additive attention with the coverage vector of summarisers.

  scores[t, s] = vector . tanh(query[t] W_q + keys[s] W_k + c_t[s] w_c + b)
  c_t = sum of weights[t'] over all t' < t
"""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.normalizers import NORMALIZERS
from attention_jax.ops.products import add_bias
from attention_jax.ops.scores import additive_scores
from attention_jax.ops.trackers import coverage
from attention_jax.types import Array, Memory, Params, State

PAPER = "See, Liu and Manning (2017), section 2.3, eq. 10 and 11"


@dataclasses.dataclass(frozen=True)
class Config:
    """Additive attention with a coverage vector.

    Attributes:
      name: The mechanism.
      attention_dim: Depth of the hidden layer of each head.
      num_heads: How many heads attend side by side.
      normalizer: From scores to weights.
    """

    name: str = setting("coverage_vector")
    attention_dim: int = setting(256, at_least=1)
    num_heads: int = setting(1, at_least=1)
    normalizer: str = setting("softmax", choices=NORMALIZERS)


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the mechanism for queries and keys of the given depths."""
    depth = config.attention_dim
    parameters = {
        "query_kernel": Parameter.of("attention_kernel", query=query_dim, attention=depth),
        "key_kernel": Parameter.of("attention_kernel", key=key_dim, attention=depth),
        "coverage_kernel": Parameter.of("coverage_kernel", coverage=1, attention=depth),
        "bias": Parameter.of("bias", attention=depth),
        "vector": Parameter.of("attention_vector", attention=depth),
    }
    spec = AttentionSpec(
        _score,
        NORMALIZERS[config.normalizer],
        prepare=_prepare,
        trackers=(("coverage", coverage()),),
        reads=("coverage",),
    )
    return MechanismParts(spec, parameters)


def _prepare(params: Params, memory: Memory, positions: Array) -> Memory:
    keys = add_bias(memory.keys @ params["key_kernel"], params["bias"])
    return dataclasses.replace(memory, keys=keys)


def _score(params: Params, query: Array, memory: Memory, state: State, positions: Array) -> Array:
    covered = state["coverage"][..., None].astype(memory.keys.dtype) @ params["coverage_kernel"]
    return additive_scores(query @ params["query_kernel"], memory.keys + covered, params["vector"])
