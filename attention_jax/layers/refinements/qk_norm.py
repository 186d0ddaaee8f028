"""Normalised queries and keys: scores stay bounded however large the activations grow.

  rms:  scores[t, s] = score(rms_norm(query[t]), rms_norm(keys[s])), with learned gains
  l2:   scores[t, s] = g cos(query[t], keys[s]), with a factor g for each head

`l2` is for dot products only, and takes the place of what else they are multiplied by.
"""

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.refinement import Head, RefinementConfig, scale_of_products
from attention_jax.ops.normalization import rms_norm
from attention_jax.ops.summation import upcast
from attention_jax.types import Array, Memory, Params

PAPER = (
    "Henry et al. (2020), section 3 (l2); Dehghani et al. (2023), section 2.1, with layer "
    "normalisation in place of rms"
)


@dataclasses.dataclass(frozen=True)
class Config(RefinementConfig):
    """Normalised queries and keys.

    Attributes:
      norm: `rms`, with a gain for every channel, or `l2`, with one learned factor g
        for each head.
      length: Of `l2`: g starts at log2(length^2 - length), for sequences of that length.
    """

    norm: str = setting("rms", choices=("rms", "l2"))
    length: int = setting(64, at_least=2)
    order: ClassVar[int] = 10
    tells_key_bias: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Rejects a length that would change nothing."""
        if self.norm != "l2" and self.length != 64:
            raise ValueError(f"length: expected only with norm 'l2', found {self.length}")


def refine(config: Config, parts: MechanismParts, head: Head) -> MechanismParts:
    """Normalises queries and keys after their projection.

    Raises:
      ValueError: If the norm is `l2` and scores are not dot products.
    """
    spec, is_rms, factor = parts.spec, config.norm == "rms", 1.0
    if is_rms:
        parameters = {
            "query_scale": Parameter.of("scale", head_dim=head.key_dim),
            # Heads of a group share keys, and so what those are scaled by.
            "key_scale": Parameter.of("scale", head_dim=head.key_dim).shared("heads"),
        }
    else:
        parameters = {"query_scale": Parameter.of("scale")}  # a scalar for each head
        scale = scale_of_products(head, "'qk_norm' with norm 'l2'")
        # Divided by the score's own scale, whose place this factor takes.
        factor = math.log2(config.length**2 - config.length) / scale

    def prepare(params: Params, memory: Memory, positions: Array) -> Memory:
        memory = spec.prepare(params, memory, positions)
        keys = rms_norm(memory.keys, params["key_scale"]) if is_rms else _unit(memory.keys)
        return dataclasses.replace(memory, keys=keys)

    def prepare_query(params: Params, query: Array, positions: Array) -> Array:
        query = spec.prepare_query(params, query, positions)
        if is_rms:
            return rms_norm(query, params["query_scale"])
        unit, scale = upcast(_unit(query)), upcast(params["query_scale"])
        # The factor stands at the query alone: it multiplies products once.
        return (unit * (factor * scale)).astype(query.dtype)

    return parts._replace(
        spec=dataclasses.replace(spec, prepare=prepare, prepare_query=prepare_query),
        parameters={**parts.parameters, **parameters},
    )


def _unit(vectors: Array) -> Array:
    """Returns vectors of length one; zeros stay zeros, with finite gradients."""
    square = jnp.square(upcast(vectors)).sum(-1, keepdims=True)
    # Below the bound the length is constant, so that the gradient of a zero is no NaN.
    return (vectors * jax.lax.rsqrt(jnp.maximum(square, 1e-12))).astype(vectors.dtype)
