"""Additive attention that knows how much of each slot has been attended to.

  scores[t, s] = vector . tanh(query[t] W_q + keys[s] W_k + C_{t-1}[s] V)
  C_t[s] = C_{t-1}[s] + weights[t, s] / fertility[s],   C_0 = 0
  fertility[s] = N sig(keys[s] . u), or one

Computed is its inverse, (1 + exp(-keys[s] . u)) / N, which has a gradient where the fertility is as
good as zero.
"""

import dataclasses
import functools
import math

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.normalizers import NORMALIZERS
from attention_jax.ops.scores import additive_scores
from attention_jax.ops.summation import sum_type
from attention_jax.ops.trackers import coverage
from attention_jax.types import Array, Memory, Params, State

PAPER = "Tu, Lu, Liu, Liu and Li (2016), on linguistic coverage"
TELLS_KEY_BIAS = True


@dataclasses.dataclass(frozen=True)
class Config:
    """Additive attention with linguistic coverage.

    Attributes:
      name: The mechanism.
      attention_dim: Depth of the hidden layer of each head.
      max_fertility: N: how many target words a slot may account for (2 in the paper), predicted
        for each slot; 0 for the model without fertility, where that is one for all.
      num_heads: How many heads attend side by side.
      normalizer: From scores to weights.
    """

    name: str = setting("linguistic_coverage")
    attention_dim: int = setting(256, at_least=1)
    max_fertility: float = setting(0.0, at_least=0.0)
    num_heads: int = setting(1, at_least=1)
    normalizer: str = setting("softmax", choices=NORMALIZERS)


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the mechanism for queries and keys of the given depths."""
    has_fertility, depth = config.max_fertility > 0, config.attention_dim
    parameters = {
        "query_kernel": Parameter.of("attention_kernel", query=query_dim, attention=depth),
        "key_kernel": Parameter.of("attention_kernel", key=key_dim, attention=depth),
        "coverage_kernel": Parameter.of("coverage_kernel", coverage=1, attention=depth),
        "vector": Parameter.of("attention_vector", attention=depth),
    }
    if has_fertility:
        parameters["fertility_vector"] = Parameter.of("attention_vector", key=key_dim)

    def prepare(params: Params, memory: Memory, positions: Array) -> Memory:
        aux = dict(memory.aux)
        if has_fertility:
            aux["inverse_fertility"] = _inverse_share(memory.keys, params) / config.max_fertility
        return dataclasses.replace(memory, keys=memory.keys @ params["key_kernel"], aux=aux)

    tracker = coverage((lambda memory: memory.aux["inverse_fertility"]) if has_fertility else None)
    spec = AttentionSpec(
        _score,
        NORMALIZERS[config.normalizer],
        prepare=prepare,
        trackers=(("coverage", tracker),),
        reads=("coverage",),
    )
    return MechanismParts(spec, parameters)


def _inverse_share(keys: Array, params: Params) -> Array:
    """Returns 1 / sig(keys . u), bounded such that sums of it are finite."""
    product = functools.partial(jnp.matmul, preferred_element_type=sum_type(keys))
    logit = product(keys, params["fertility_vector"])
    most = 0.9 * math.log(jnp.finfo(logit.dtype).max)
    return 1.0 + jnp.exp(jnp.minimum(-logit, most))


def _score(params: Params, query: Array, memory: Memory, state: State, positions: Array) -> Array:
    dtype = memory.keys.dtype
    covered = jnp.minimum(state["coverage"], jnp.finfo(dtype).max).astype(dtype)
    covered = covered[..., None] @ params["coverage_kernel"]
    return additive_scores(query @ params["query_kernel"], memory.keys + covered, params["vector"])
