"""Products of many vectors with one matrix."""

import math

import jax.numpy as jnp
from jaxtyping import Float

from attention_jax.types import Array


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

    Source:
      None; a linear layer.

    Deviations:
      None.
    """
    *axes, depth = vectors.shape
    rows = vectors.reshape(math.prod(axes), depth)  # no -1, which cannot be told where it is empty
    return jnp.matmul(rows, kernel).reshape(*axes, kernel.shape[-1])
