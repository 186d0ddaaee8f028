"""Additive attention with a coverage vector for each slot, updated by a recurrent network.

  scores[t, s] = vector . tanh(query[t] W_q + keys[s] W_k + C_{t-1}[s] V)
  C_t[s] = cell(C_{t-1}[s]; weights[t, s] w_a + keys[s] W_h + query[t] W_s),   C_0 = 0
"""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.additive import AdditiveConfig, additive_parts
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.trackers import neural_coverage
from attention_jax.types import Array, Memory, Params, State

PAPER = "Tu, Lu, Liu, Liu and Li (2016), on coverage by a neural network"


@dataclasses.dataclass(frozen=True)
class Config(AdditiveConfig):
    """Additive attention with neural coverage.

    Further fields are those of `layers.additive.AdditiveConfig`.

    Attributes:
      coverage_dim: Depth of a slot's coverage vector (1 and 10 in the paper, 10 the better).
      cell: What updates it: `gru` (the paper's gating) or `tanh`.
    """

    name: str = setting("neural_coverage")
    coverage_dim: int = setting(10, at_least=1)
    cell: str = setting("gru", choices=("gru", "tanh"))


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the mechanism for queries and keys of the given depths."""
    depth, covered = config.attention_dim, config.coverage_dim
    width = covered * (3 if config.cell == "gru" else 1)  # reset, update and candidate
    more = {
        "coverage_kernel": Parameter.of("coverage_kernel", coverage=covered, attention=depth),
        "coverage_recurrent": Parameter.of("recurrent", coverage=covered, gates=width),
        "coverage_weight": Parameter.of("attention_vector", gates=width),
        "coverage_key": Parameter.of("attention_kernel", key=key_dim, gates=width),
        "coverage_query": Parameter.of("attention_kernel", query=query_dim, gates=width),
    }
    trackers = {"coverage": neural_coverage(covered, config.cell)}
    return additive_parts(
        config, query_dim, key_dim, more, prepare=_prepare, keys=_keys, trackers=trackers
    )


def _prepare(params: Params, memory: Memory, positions: Array) -> Memory:
    # Before the keys are projected for the score, since the network reads the annotations.
    aux = {**memory.aux, "coverage_input": memory.keys @ params["coverage_key"]}
    return dataclasses.replace(memory, keys=memory.keys @ params["key_kernel"], aux=aux)


def _keys(params: Params, memory: Memory, state: State) -> Array:
    return memory.keys + state["coverage"] @ params["coverage_kernel"]  # *B S C @ C Da
