"""Products of many vectors with one matrix."""

import jax.numpy as jnp
from jaxtyping import Float

from attention_jax.types import Array


def multiply_rows(
    vectors: Float[Array, "*N D"], kernel: Float[Array, "D F"]
) -> Float[Array, "*N F"]:
    """Multiplies each vector by a matrix, all of them as the rows of one.

      y[n] = x[n] W

    In two dimensions, because XLA on a CPU lays out the gradient of `W` anew where the rows have
    several axes, and takes up to three times as long for its product.

    Args:
      vectors: What is multiplied.
      kernel: The matrix.

    Returns:
      The products.

    Source:
      None; a linear layer.

    Deviations:
      None.
    """
    rows = vectors.reshape(-1, vectors.shape[-1])
    return jnp.matmul(rows, kernel).reshape(*vectors.shape[:-1], kernel.shape[-1])
