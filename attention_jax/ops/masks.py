"""Masks, True where something is real; shifts and means of padded sequences."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped


def zero_padding(
    values: Float[Array, "*B S D"], mask: Bool[Array, "*#B S"]
) -> Float[Array, "*B S D"]:
    """Masks padding: replaces whatever stands there by zeros, NaN included."""
    # Not a product with the mask: zero times NaN is NaN.
    return jnp.where(mask[..., None], values, jnp.zeros((), values.dtype))


def masked_mean(values: Float[Array, "*B S D"], mask: Bool[Array, "*#B S"]) -> Float[Array, "*B D"]:
    """Mean pooling: averages over real positions; an empty sequence gives zeros."""
    count = jnp.maximum(mask.sum(-1, keepdims=True), 1).astype(values.dtype)
    return zero_padding(values, mask).sum(-2) / count


def shift_right(tokens: Shaped[Array, "B T"], first: int) -> Shaped[Array, "B T"]:
    """Shifts right, for teacher forcing: `first`, then all tokens but the last."""
    start = jnp.full_like(tokens[:, :1], first)
    return jnp.concatenate([start, tokens[:, :-1]], axis=1)


def time_major(tree: Shaped[Array, "B T ..."]) -> Shaped[Array, "T B ..."]:
    """Swaps the batch and time axes."""
    return jnp.swapaxes(tree, 0, 1)
