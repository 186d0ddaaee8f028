"""Additive attention: a hidden layer scores each query against each key.

  scores[t, s] = vector . tanh(query[t] W_q + keys[s] W_k)

The keys are projected once for a source, not once for a query.
"""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.normalizers import NORMALIZERS
from attention_jax.ops.scores import additive_scores
from attention_jax.types import Array, Memory, Params, State

PAPER = "Bahdanau, Cho and Bengio (2015), section 3.1 and appendix A.1.2"
TELLS_KEY_BIAS = True


@dataclasses.dataclass(frozen=True)
class Config:
    """Additive attention.

    Attributes:
      name: The mechanism.
      attention_dim: Depth of the hidden layer, n' in the paper (there 1000), of each head.
      num_heads: How many heads attend side by side.
      normalizer: From scores to weights.
    """

    name: str = setting("bahdanau")
    attention_dim: int = setting(256, at_least=1)
    num_heads: int = setting(1, at_least=1)
    normalizer: str = setting("softmax", choices=NORMALIZERS)


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds additive attention for queries and keys of the given depths."""
    depth = config.attention_dim
    parameters = {
        "query_kernel": Parameter.of("attention_kernel", query=query_dim, attention=depth),
        "key_kernel": Parameter.of("attention_kernel", key=key_dim, attention=depth),
        "vector": Parameter.of("attention_vector", attention=depth),
    }
    spec = AttentionSpec(_score, NORMALIZERS[config.normalizer], prepare=_prepare)
    return MechanismParts(spec, parameters, memory_parameters=frozenset({"key_kernel"}))


def _prepare(params: Params, memory: Memory, positions: Array) -> Memory:
    return dataclasses.replace(memory, keys=memory.keys @ params["key_kernel"])


def _score(params: Params, query: Array, memory: Memory, state: State, positions: Array) -> Array:
    return additive_scores(query @ params["query_kernel"], memory.keys, params["vector"])
