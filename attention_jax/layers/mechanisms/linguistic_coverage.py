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
from attention_jax.layers.additive import AdditiveConfig, additive_parts
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.summation import accumulation_dtype
from attention_jax.ops.trackers import coverage
from attention_jax.types import Array, Memory, Params, State

PAPER = "Tu, Lu, Liu, Liu and Li (2016), on linguistic coverage"


@dataclasses.dataclass(frozen=True)
class Config(AdditiveConfig):
    """Additive attention with linguistic coverage.

    Further fields are those of `layers.additive.AdditiveConfig`.

    Attributes:
      max_fertility: N: how many target words a slot may account for (2 in the paper), predicted
        for each slot; 0 for the model without fertility, where that is one for all.
    """

    name: str = setting("linguistic_coverage")
    max_fertility: float = setting(0.0, at_least=0.0)


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the mechanism for queries and keys of the given depths."""
    has_fertility, depth = config.max_fertility > 0, config.attention_dim
    more = {"coverage_kernel": Parameter.of("coverage_kernel", coverage=1, attention=depth)}
    if has_fertility:
        more["fertility_vector"] = Parameter.of("attention_vector", key=key_dim)

    def prepare(params: Params, memory: Memory, positions: Array) -> Memory:
        aux = dict(memory.aux)
        if has_fertility:
            # Of the annotations, before they are projected for the score.
            aux["inverse_fertility"] = _inverse_share(memory.keys, params) / config.max_fertility
        return dataclasses.replace(memory, keys=memory.keys @ params["key_kernel"], aux=aux)

    tracker = coverage((lambda memory: memory.aux["inverse_fertility"]) if has_fertility else None)
    return additive_parts(
        config, query_dim, key_dim, more, prepare=prepare, keys=_keys,
        trackers={"coverage": tracker},
    )  # fmt: skip


def _inverse_share(keys: Array, params: Params) -> Array:
    """Returns 1 / sig(keys . u), bounded such that sums of it are finite."""
    product = functools.partial(jnp.matmul, preferred_element_type=accumulation_dtype(keys))
    logit = product(keys, params["fertility_vector"])
    # The exponential of this is far enough below the largest float for hundreds of steps to add up.
    most = 0.9 * math.log(jnp.finfo(logit.dtype).max)
    return 1.0 + jnp.exp(jnp.minimum(-logit, most))


def _keys(params: Params, memory: Memory, state: State) -> Array:
    dtype = memory.keys.dtype
    # A float32 beyond the largest of a shorter type would be infinite there.
    covered = jnp.minimum(state["coverage"], jnp.finfo(dtype).max).astype(dtype)
    return memory.keys + covered[..., None] @ params["coverage_kernel"]  # *B S 1 @ 1 Da
