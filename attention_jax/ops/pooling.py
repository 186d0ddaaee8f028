"""Pooling: one vector for a sequence of them, with the share that each position has in it.

Positions are `*B S`; padding has no share, and a sequence of padding alone is pooled to zeros.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention_jax.ops.masks import masked_mean, zero_padding
from attention_jax.ops.summation import upcast
from attention_jax.types import Leaf, Memory, Params


class Pooled(NamedTuple):
    """Pooled sequence.

    Attributes:
      summary: `*B D`.
      weights: `*B S`, float32, the share of each position; they add up to 1 unless there is none.
    """

    summary: Leaf
    weights: Leaf


def average_pooling(values: Float[Array, "*B S D"], mask: Bool[Array, "*#B S"]) -> Pooled:
    """Mean pooling: averages real positions, all of one weight."""
    mask = jnp.broadcast_to(mask, values.shape[:-1])
    count = jnp.maximum(mask.sum(-1, keepdims=True), 1)
    return Pooled(masked_mean(values, mask), upcast(mask / count))


def maximum_pooling(values: Float[Array, "*B S D"], mask: Bool[Array, "*#B S"]) -> Pooled:
    """Max pooling: takes the largest value of each feature.

      summary[d] = max_s values[s, d]

    The weight of a position is the share of the features that are its own; those that several
    positions have in equal measure are divided among them. Nothing is learnt through weights.
    """
    mask = jnp.broadcast_to(mask, values.shape[:-1])
    lowest = jnp.full_like(values, -jnp.inf)
    largest = jnp.where(mask[..., None], values, lowest).max(-2, initial=-jnp.inf)
    # Selected, not multiplied: zero times minus infinity is no number.
    summary = jnp.where(mask.any(-1)[..., None], largest, jnp.zeros_like(largest))
    is_largest = upcast((values == largest[..., None, :]) & mask[..., None]) * 1.0  # *B S D
    owned = is_largest / jnp.maximum(is_largest.sum(-2, keepdims=True), 1.0)
    return Pooled(summary, jax.lax.stop_gradient(owned.mean(-1)))


def hidden_keys(params: Params, memory: Memory) -> Float[Array, "*B S A"]:
    """Keys that a learnt query is compared with: tanh(values W + b).

    Source:
      Yang et al. (2016), eq. 5 and 8.
    """
    # Zeroed before the product, whose gradient would multiply a NaN at padding by zero.
    keys = zero_padding(memory.keys, memory.mask) @ params["kernel"]
    return jnp.tanh(keys + params["bias"])
