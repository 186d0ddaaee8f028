"""Products of many vectors with one matrix."""

import math

import jax.numpy as jnp
from jaxtyping import Float

from attention_jax.types import Array


def project(
    vectors: Float[Array, "*N D"], kernel: Float[Array, "D F"] | None
) -> Float[Array, "*N _F"]:
    """Multiplies each vector by a matrix, all of them as the rows of one.

      y[n] = x[n] W

    In two dimensions, because XLA on a CPU lays out anew what the gradient of `W` is made of where
    the rows have several axes, and takes up to three times as long for that product.

    Args:
      vectors: What is multiplied.
      kernel: The matrix; None where it was left out because it has no rows.

    Returns:
      The products; of no matrix, one zero for each vector.

    Source:
      None; a linear layer.

    Deviations:
      None.
    """
    if kernel is None:
        return jnp.zeros((*vectors.shape[:-1], 1), vectors.dtype)
    *axes, depth = vectors.shape
    rows = vectors.reshape(math.prod(axes), depth)  # no -1, which cannot be told where it is empty
    return jnp.matmul(rows, kernel).reshape(*axes, kernel.shape[-1])
