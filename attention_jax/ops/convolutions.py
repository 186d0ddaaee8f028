"""Convolutions over padded sequences: every output sees a window around its own place."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention_jax.ops.masks import zero_padding
from attention_jax.ops.products import add_bias


def convolve(
    values: Float[Array, "B S D"],
    kernel: Float[Array, "WD F"],
    bias: Float[Array, " F"],
    mask: Bool[Array, "B S"],
) -> Float[Array, "B S F"]:
    """Convolution: filters sequences padded with zeros on both sides, so that lengths stay.

    output[s] = bias + sum_w kernel[w]^T values[s + w - (W - 1) / 2]

    Args:
      values: What stands at padding is read as zeros, as is what lies outside.
      kernel: One `D F` block for each of an odd number W of places, one below the other.
      bias: Added at every place.
      mask: True at real tokens.

    Returns:
      One output for each place, those at padding included.

    Source:
      Gehring et al. (2017), "A convolutional encoder model", section 3.2: no pooling, same length.
    """
    depth, width = values.shape[-1], kernel.shape[0] // values.shape[-1]
    product = jax.lax.conv_general_dilated(
        # NaN at padding would otherwise reach its real neighbours.
        zero_padding(values, mask),
        kernel.reshape(width, depth, -1),  # W D F
        window_strides=(1,),
        padding="SAME",  # of an odd width: (W - 1) / 2 zeros on both sides
        dimension_numbers=("NWC", "WIO", "NWC"),
    )
    return add_bias(product, bias)


def average_window(
    values: Float[Array, "B S D"], mask: Bool[Array, "B S"], width: int
) -> Float[Array, "B S D"]:
    """Average pooling: averages the places of a window, zeros outside the sequence included.

    output[s] = 1/W sum_w values[s + w - (W - 1) / 2]

    Args:
      values: What stands at padding is read as zeros.
      mask: True at real tokens.
      width: W, an odd number.

    Returns:
      One average for each place, those at padding included.

    Source:
      Gehring et al. (2017), "A convolutional encoder model", section 3.1.
    """
    values, side = zero_padding(values, mask), width // 2
    # A sum of W shifted copies, which XLA fuses into one pass over the values.
    padded = jnp.pad(values, ((0, 0), (side, side), (0, 0)))
    length = values.shape[1]
    return sum(padded[:, start : start + length] for start in range(width)) / width


def gated_linear_unit(values: Float[Array, "*B F2"]) -> Float[Array, "*B F"]:
    """Gated linear unit: one half of the channels decides how much of the other half passes.

    output = a * sig(b), with [a; b] = values

    Source:
      Dauphin et al. (2017), eq. 1; Gehring et al. (2017), "Convolutional sequence to sequence
      learning", section 3.2.
    """
    passing, gate = jnp.split(values, 2, axis=-1)  # *B 2F -> *B F twice
    return passing * jax.nn.sigmoid(gate)
