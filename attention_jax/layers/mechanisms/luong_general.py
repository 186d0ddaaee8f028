"""Luong's general score: a learned bilinear form between query and key.

  scores[t, s] = query[t]^T kernel keys[s]

The keys are multiplied by the kernel once for a source; a dot product remains for each query.
"""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismConfig, MechanismParts
from attention_jax.layers.normalizer import NORMALIZERS
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.scores import dot_scores, project_general_keys
from attention_jax.types import Array, Memory, Params, State

PAPER = "Luong, Pham and Manning (2015), section 3.1, below eq. 7 (general)"


@dataclasses.dataclass(frozen=True)
class Config(MechanismConfig):
    """General attention.

    Attributes:
      name: The mechanism.
      num_heads: How many heads attend side by side.
      normalizer: From scores to weights.
    """

    name: str = setting("luong_general")
    num_heads: int = setting(1, at_least=1)
    normalizer: str = setting("softmax", choices=NORMALIZERS)


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds general attention for queries and keys of the given depths."""
    kernel = Parameter.of("attention_kernel", query=query_dim, key=key_dim).shared("heads")
    spec = AttentionSpec(_score, NORMALIZERS[config.normalizer], prepare=_prepare)
    return MechanismParts(spec, {"kernel": kernel})


def _prepare(params: Params, memory: Memory, positions: Array) -> Memory:
    keys = project_general_keys(memory.keys, params["kernel"])
    return dataclasses.replace(memory, keys=keys)


def _score(params: Params, query: Array, memory: Memory, state: State, positions: Array) -> Array:
    return dot_scores(query, memory.keys)
