"""Layer, RMS and weight normalization, computed in float32 at least."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.ops.summation import upcast


def layer_norm(
    vectors: Float[Array, "*B D"],
    scale: Float[Array, "D"],
    bias: Float[Array, "D"],
    epsilon: float = 1e-6,
) -> Float[Array, "*B D"]:
    """Layer normalization: shifts to mean zero and scales to variance one, then gain and bias.

      y = scale (x - mean x) / sqrt(var x + epsilon) + bias

    Source:
      Ba, Kiros and Hinton (2016), eq. 4; the variance is that of the population.
    """
    values = upcast(vectors)
    centred = values - values.mean(-1, keepdims=True)
    # From the centred values: E x^2 - (E x)^2 loses its digits where the mean is large.
    deviation = jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + epsilon)
    return (centred * deviation * scale + bias).astype(vectors.dtype)


def rms_norm(
    vectors: Float[Array, "*B D"], scale: Float[Array, "D"], epsilon: float = 1e-6
) -> Float[Array, "*B D"]:
    """RMS normalization: scales to a mean square of one, then by a gain.

      y = scale x / sqrt(mean x^2 + epsilon)

    Source:
      Zhang and Sennrich (2019), eq. 4.
    """
    values = upcast(vectors)
    deviation = jax.lax.rsqrt(jnp.square(values).mean(-1, keepdims=True) + epsilon)
    # The mean stays in: only the size of the vectors is normalised.
    return (values * deviation * scale).astype(vectors.dtype)


def unit_vector(vectors: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
    """Weight normalization: scales to length one; a vector of zeros stays.

      y = x / ||x||

    Source:
      Salimans and Kingma (2016), eq. 2, without its gain.
    """
    values = upcast(vectors)
    # Squares of what is very small or large have no place in float32: such vectors are scaled
    # before, others divided by one.
    largest = jax.lax.stop_gradient(jnp.abs(values).max(-1, keepdims=True))
    is_extreme = (largest > 0.0) & ((largest < 1e-12) | (largest > 1e12))
    values = values / jnp.where(is_extreme, largest, 1.0)
    squares = jnp.square(values).sum(-1, keepdims=True)
    return (values / jnp.sqrt(jnp.where(squares > 0.0, squares, 1.0))).astype(vectors.dtype)
