"""Additive attention: what is shared by mechanisms that score through a hidden layer.

  scores[t, s] = vector . tanh(query[t] W_q + keys[s] W_k + what the mechanism adds)

Keys are projected once for a source, not once for a query.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismConfig, MechanismParts
from attention_jax.layers.normalizer import NORMALIZERS
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec, Tracker
from attention_jax.ops.scores import additive_scores
from attention_jax.types import Array, Memory, Params, State


@dataclasses.dataclass(frozen=True)
class AdditiveConfig(MechanismConfig):
    """Additive attention config: what those of its mechanisms share.

    Attributes:
      attention_dim: Depth of the hidden layer of each head.
      num_heads: How many heads attend side by side.
      normalizer: From scores to weights.
    """

    attention_dim: int = setting(256, at_least=1)
    num_heads: int = setting(1, at_least=1)
    normalizer: str = setting("softmax", choices=NORMALIZERS)
    tells_key_bias: ClassVar[bool] = True


def project_memory(params: Params, memory: Memory, positions: Array) -> Memory:
    """Projects the keys, once for a source: keys W_k."""
    return dataclasses.replace(memory, keys=memory.keys @ params["key_kernel"])


def project_query(params: Params, query: Array, positions: Array) -> Array:
    """Projects queries: query W_q."""
    return query @ params["query_kernel"]


def projected_keys(params: Params, memory: Memory, state: State) -> Array:
    """Returns the projected keys as they are."""
    return memory.keys


def ending_vector(params: Params) -> Array:
    """Returns the vector that ends the score as it is."""
    return params["vector"]


def additive_parts(
    config: AdditiveConfig,
    query_dim: int,
    key_dim: int,
    more: Mapping[str, Parameter] = {},  # noqa: B006  (never changed)
    *,
    prepare: Callable[[Params, Memory, Array], Memory] = project_memory,
    query: Callable[[Params, Array, Array], Array] = project_query,
    keys: Callable[[Params, Memory, State], Array] = projected_keys,
    vector: Callable[[Params], Array] = ending_vector,
    trackers: Mapping[str, Tracker] = {},  # noqa: B006
    of_memory: Collection[str] = (),
    **parts: Any,
) -> MechanismParts:
    """Additive attention: builds one head with an additive score.

    Args:
      config: The mechanism's.
      query_dim: Depth of the queries.
      key_dim: Depth of the keys.
      more: Parameters beside `query_kernel`, `key_kernel` and `vector`.
      prepare: What is done once for a source.
      query: (params, query `*B T Dq`, positions) -> its part of the hidden layer, `*B T Da`.
      keys: (params, memory, state) -> the slots' part of the hidden layer, `*B S Da`.
      vector: From parameters to what the hidden layer is multiplied by, `Da`.
      trackers: What is carried from query to query, all of it read by `keys`.
      of_memory: Names of the parameters that only `prepare` reads, where it reads no others.
      **parts: Further fields of `MechanismParts`.
    """
    depth = config.attention_dim

    def score(
        params: Params, vectors: Array, memory: Memory, state: State, positions: Array
    ) -> Array:
        hidden = query(params, vectors, positions), keys(params, memory, state)
        return additive_scores(*hidden, vector(params))

    spec = AttentionSpec(
        score,
        NORMALIZERS[config.normalizer],
        prepare=prepare,
        trackers=tuple(trackers.items()),
        reads=tuple(trackers),
    )
    parameters = {
        "query_kernel": Parameter.of("attention_kernel", query=query_dim, attention=depth),
        "key_kernel": Parameter.of("attention_kernel", key=key_dim, attention=depth),
        "vector": Parameter.of("attention_vector", attention=depth),
        **more,
    }
    parameters |= {name: parameters[name].shared("heads") for name in of_memory}
    return MechanismParts(spec, parameters, **parts)
