"""Products: one matrix and one bias for many vectors, and values averaged under weights."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.ops.summation import upcast
from attention_jax.types import Memory, Params


def multiply_rows(
    vectors: Float[Array, "*N D"], kernel: Float[Array, "D F"]
) -> Float[Array, "*N F"]:
    """Linear map: multiplies many vectors by one matrix, as the rows of a single product.

      y[n] = x[n] W

    In two dimensions, because XLA on a CPU lays out the operands of `W`'s gradient anew where rows
    have several axes, and then takes up to three times as long for that product. The first axis of
    the vectors has to be the batch: rows that are split over devices can be lined up only where
    those of a device are neighbours.
    """
    *axes, depth = vectors.shape
    rows = vectors.reshape(math.prod(axes), depth)  # not -1: of an empty array it is unknown
    return jnp.matmul(rows, kernel).reshape(*axes, kernel.shape[-1])


def add_bias(
    vectors: Float[Array, "*N #D"], bias: Float[Array, "*#N D"]
) -> Float[Array, "*N D"]:
    """Bias: adds one vector, or one for each index of the last axes, to many vectors.

      y[n] = x[n] + b

    In float32, then rounded to the vectors' type, since the gradient of `b` is a sum over all of
    them.
    """
    return (upcast(vectors) + upcast(bias)).astype(vectors.dtype)


def average_values(
    params: Params, weights: Float[Array, "*B T S"], memory: Memory, positions: Array
) -> Float[Array, "*B T Dv"]:
    """Context: averages the values under the weights, `*B T S` times `*B S Dv`."""
    return jnp.matmul(weights.astype(memory.values.dtype), memory.values)
