"""Products: one matrix and one bias for many vectors, and values averaged under weights."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.ops.summation import upcast
from attention_jax.types import Memory, Params


def multiply_rows(
    vectors: Float[Array, "*N D"], kernel: Float[Array, "D F"]
) -> Float[Array, "*N F"]:
    """Multiplies each vector by a matrix, all of them as the rows of one.

      y[n] = x[n] W

    In two dimensions, because XLA on a CPU lays out anew what the gradient of `W` is made of where
    the rows have several axes, and takes up to three times as long for that product. The first axis
    has to be the batch: rows that several devices share can be lined up only where theirs are
    beside each other.

    Args:
      vectors: What is multiplied, the batch first.
      kernel: The matrix.

    Returns:
      The products.
    """
    *axes, depth = vectors.shape
    rows = vectors.reshape(math.prod(axes), depth)  # no -1, which cannot be told where it is empty
    return jnp.matmul(rows, kernel).reshape(*axes, kernel.shape[-1])


def add_bias(
    vectors: Float[Array, "*N #D"], bias: Float[Array, "*#N D"]
) -> Float[Array, "*N D"]:
    """Adds the same to many vectors.

      y[n] = x[n] + b

    In float32 and rounded, since the gradient of `b` is a sum over all vectors.

    Args:
      vectors: What is added to.
      bias: What is added: one vector, or one for each index of the last axes.

    Returns:
      The sums, of the vectors' type.
    """
    return (upcast(vectors) + upcast(bias)).astype(vectors.dtype)


def average_values(
    params: Params, weights: Float[Array, "*B T S"], memory: Memory, positions: Array
) -> Float[Array, "*B T Dv"]:
    """Averages the values under the weights: the contexts of `ops.attend`."""
    return jnp.matmul(weights.astype(memory.values.dtype), memory.values)
