"""Additive attention with the coverage vector of summarisers.

  scores[t, s] = vector . tanh(query[t] W_q + keys[s] W_k + c_t[s] w_c + b)
  c_t = sum of weights[t'] over all t' < t
"""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.layers.additive import AdditiveConfig, additive_parts
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.products import add_bias
from attention_jax.ops.trackers import coverage
from attention_jax.types import Array, Memory, Params, State

PAPER = "See, Liu and Manning (2017), section 2.3, eq. 10 and 11"


@dataclasses.dataclass(frozen=True)
class Config(AdditiveConfig):
    """Additive attention with a coverage vector.

    Further fields are those of `layers.additive.AdditiveConfig`.
    """

    name: str = setting("coverage_vector")
    tells_key_bias: ClassVar[bool] = False  # it has one itself


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the mechanism for queries and keys of the given depths."""
    depth = config.attention_dim
    more = {
        "coverage_kernel": Parameter.of("coverage_kernel", coverage=1, attention=depth),
        "bias": Parameter.of("bias", attention=depth),
    }
    trackers = {"coverage": coverage()}
    return additive_parts(
        config, query_dim, key_dim, more, prepare=_prepare, keys=_keys, trackers=trackers
    )


def _prepare(params: Params, memory: Memory, positions: Array) -> Memory:
    # The bias is added once for a source, although the equation adds it for every query.
    keys = add_bias(memory.keys @ params["key_kernel"], params["bias"])
    return dataclasses.replace(memory, keys=keys)


def _keys(params: Params, memory: Memory, state: State) -> Array:
    covered = state["coverage"][..., None].astype(memory.keys.dtype)  # *B S 1
    return memory.keys + covered @ params["coverage_kernel"]
