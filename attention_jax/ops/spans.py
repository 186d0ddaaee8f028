"""Spans: what is known of positions that an encoder reads, carried over to its slots, and back.

A slot of a memory stands for the positions `first <= i < end` of its span: all that a pyramid has
merged, or a region of an image. An empty span stands for nothing, as at padding.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


def any_in_spans(
    flags: Bool[Array, "*B N"], spans: Int[Array, "*#B S 2"]
) -> Bool[Array, "*B S"]:
    """Tells which spans hold a flagged position.

      found[s] = any flags[i], spans[s, 0] <= i < spans[s, 1]

    Args:
      flags: Of each position.
      spans: The first position of each span, and the one after its last.
    """
    # Prefix sums, 0 first: how many flags stand before a place, so that a span needs two of them.
    counts = jnp.cumsum(flags, axis=-1, dtype=jnp.int32)
    counts = jnp.concatenate([jnp.zeros_like(counts[..., :1]), counts], axis=-1)
    *axes, _ = flags.shape

    def count_before(place: Array) -> Array:
        # A row of flags for each target token, and one set of spans for all of them.
        place = jnp.broadcast_to(place, (*axes, place.shape[-1]))
        return jnp.take_along_axis(counts, place, axis=-1, mode="clip")

    return count_before(spans[..., 1]) > count_before(spans[..., 0])


def to_positions(
    weights: Float[Array, "B *T S"], spans: Int[Array, "B S 2"], size: int
) -> Float[Array, "B *T {size}"]:
    """Turns attention to slots into attention to positions, which share their slot's evenly.

      shared[t, i] = sum_s weights[t, s] / (end[s] - first[s]),  first[s] <= i < end[s]

    Args:
      weights: Attention of any number of queries.
      spans: The first position of each slot, and the one after its last.
      size: N, the positions that there are.
    """
    place, first, end = jnp.arange(size), spans[..., :1], spans[..., 1:]  # N, B S 1 and B S 1
    is_inside = (first <= place) & (place < end)  # B S N
    # An empty span has no position to share with, and nothing to divide.
    shares = is_inside / jnp.maximum(end - first, 1).astype(weights.dtype)
    return jnp.einsum("b...s,bsn->b...n", weights, shares)
