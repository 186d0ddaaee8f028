"""Pyramids: two neighbours of a sequence become one vector, level by level.

A sequence of n vectors has ceil(n / 2) pairs. That number is each row's own: the pair in which a
row ends holds zeros beside its last vector, whatever pads the row in its batch.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.ops.masks import zero_padding


def merge_pairs(
    values: Float[Array, "B N D"], mask: Bool[Array, "B N"]
) -> tuple[Float[Array, "B P D2"], Bool[Array, "B P"]]:
    """Pyramid level: concatenates each two neighbours, which halves the length.

    merged[u] = [values[2 u]; values[2 u + 1]],  P = ceil(N / 2)

    Args:
      values: What stands at padding is read as zeros.
      mask: True at real vectors.

    Returns:
      (merged, mask): a pair is real if one of its vectors is.

    Source:
      Chan et al. (2016), section 3.1, eq. 5, before the LSTM. The paper's lengths are even.
    """
    rows, length, depth = values.shape
    odd, pairs = length % 2, -(-length // 2)  # rounded up
    values = jnp.pad(zero_padding(values, mask), ((0, 0), (0, odd), (0, 0)))
    is_real = jnp.pad(mask, ((0, 0), (0, odd))).reshape(rows, pairs, 2)
    # Neighbours lie side by side in memory: B N D -> B P 2D
    return values.reshape(rows, pairs, 2 * depth), is_real.any(-1)


def pyramid_spans(
    mask: Bool[Array, "B N"], levels: int
) -> Int[Array, "B P 2"]:
    """Returns which positions each slot at the top of a pyramid stands for.

    spans[u] = [u 2^levels, (u + 1) 2^levels), cut off after the last real position

    Args:
      mask: True at the real positions of the bottom.
      levels: How often the length is halved.

    Returns:
      The first position of each slot and the one after the last; empty spans at padding.
    """
    length, width = mask.shape[1], 2**levels
    first = width * jnp.arange(-(-length // width))  # P, of which -(-a // b) rounds up
    after = jnp.max(jnp.where(mask, jnp.arange(1, length + 1), 0), axis=-1, initial=0)
    end = jnp.clip(after[:, None], first, first + width)  # B P
    return jnp.stack([jnp.broadcast_to(first, end.shape), end], axis=-1)
