"""Location-aware attention: an additive score that sees where the query before has attended.

  scores[t, s] = vector . tanh(query[t] W_q + keys[s] W_k + f_t[s] U + b)
  f_t[s] = sum_k F[k] weights[t-1, s + k - reach],  0 <= k <= 2 reach

What the content of two slots cannot tell apart, such as one sound said twice, their places can.
Before the first query nothing has been attended to, and all features are zero.
"""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.layers.additive import AdditiveConfig, additive_parts
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.products import add_bias
from attention_jax.ops.structural_biases import neighbourhood
from attention_jax.ops.trackers import previous_weights
from attention_jax.types import Array, Memory, Params, State

PAPER = "Chorowski, Bahdanau, Serdyuk, Cho and Bengio (2015), section 2.1, eq. 8 and 9"


@dataclasses.dataclass(frozen=True)
class Config(AdditiveConfig):
    """Additive attention with filters over the previous weights.

    Further fields are those of `layers.additive.AdditiveConfig`.

    Attributes:
      filters: How many filters slide over the previous weights (10 in the paper).
      reach: How many slots to either side a filter sees (100 in the paper, where a slot is 10 ms).
    """

    name: str = setting("location_aware")
    filters: int = setting(10, at_least=1)
    reach: int = setting(10, at_least=1)
    tells_key_bias: ClassVar[bool] = False  # it has one itself


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the mechanism for queries and keys of the given depths."""
    depth, width = config.attention_dim, 2 * config.reach + 1

    def keys(params: Params, memory: Memory, state: State) -> Array:
        # *B S -> *B S W: what each slot has around it.
        near = neighbourhood(state["previous"], config.reach, memory).astype(memory.keys.dtype)
        return memory.keys + near @ params["location_filters"] @ params["location_kernel"]

    more = {
        "location_filters": Parameter.of("kernel", positions=width, filters=config.filters),
        "location_kernel": Parameter.of("coverage_kernel", filters=config.filters, attention=depth),
        "bias": Parameter.of("bias", attention=depth),
    }
    trackers = {"previous": previous_weights()}
    return additive_parts(
        config, query_dim, key_dim, more, prepare=_prepare, keys=keys, trackers=trackers
    )


def _prepare(params: Params, memory: Memory, positions: Array) -> Memory:
    # The bias is added once for a source, although the equation adds it for every query.
    keys = add_bias(memory.keys @ params["key_kernel"], params["bias"])
    return dataclasses.replace(memory, keys=keys)
