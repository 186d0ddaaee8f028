"""Additive attention with a coverage vector for each slot, updated by a recurrent network.

  scores[t, s] = vector . tanh(query[t] W_q + keys[s] W_k + C_{t-1}[s] V)
  C_t[s] = cell(C_{t-1}[s]; weights[t, s] w_a + keys[s] W_h + query[t] W_s),   C_0 = 0
"""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.normalizers import NORMALIZERS
from attention_jax.ops.scores import additive_scores
from attention_jax.ops.trackers import neural_coverage
from attention_jax.types import Array, Memory, Params, State

PAPER = "Tu, Lu, Liu, Liu and Li (2016), on coverage by a neural network"
TELLS_KEY_BIAS = True


@dataclasses.dataclass(frozen=True)
class Config:
    """Additive attention with neural coverage.

    Attributes:
      name: The mechanism.
      attention_dim: Depth of the hidden layer of each head.
      coverage_dim: Depth of a slot's coverage vector (1 and 10 in the paper, 10 the better).
      cell: What updates it: `gru` (the paper's gating) or `tanh`.
      num_heads: How many heads attend side by side.
      normalizer: From scores to weights.
    """

    name: str = setting("neural_coverage")
    attention_dim: int = setting(256, at_least=1)
    coverage_dim: int = setting(10, at_least=1)
    cell: str = setting("gru", choices=("gru", "tanh"))
    num_heads: int = setting(1, at_least=1)
    normalizer: str = setting("softmax", choices=NORMALIZERS)


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the mechanism for queries and keys of the given depths."""
    depth, covered = config.attention_dim, config.coverage_dim
    width = covered * (3 if config.cell == "gru" else 1)
    parameters = {
        "query_kernel": Parameter.of("attention_kernel", query=query_dim, attention=depth),
        "key_kernel": Parameter.of("attention_kernel", key=key_dim, attention=depth),
        "coverage_kernel": Parameter.of("coverage_kernel", coverage=covered, attention=depth),
        "vector": Parameter.of("attention_vector", attention=depth),
        "coverage_recurrent": Parameter.of("recurrent", coverage=covered, gates=width),
        "coverage_weight": Parameter.of("attention_vector", gates=width),
        "coverage_key": Parameter.of("attention_kernel", key=key_dim, gates=width),
        "coverage_query": Parameter.of("attention_kernel", query=query_dim, gates=width),
    }
    spec = AttentionSpec(
        _score,
        NORMALIZERS[config.normalizer],
        prepare=_prepare,
        trackers=(("coverage", neural_coverage(covered, config.cell)),),
        reads=("coverage",),
    )
    return MechanismParts(spec, parameters)


def _prepare(params: Params, memory: Memory, positions: Array) -> Memory:
    aux = {**memory.aux, "coverage_input": memory.keys @ params["coverage_key"]}
    return dataclasses.replace(memory, keys=memory.keys @ params["key_kernel"], aux=aux)


def _score(params: Params, query: Array, memory: Memory, state: State, positions: Array) -> Array:
    covered = state["coverage"] @ params["coverage_kernel"]
    return additive_scores(query @ params["query_kernel"], memory.keys + covered, params["vector"])
