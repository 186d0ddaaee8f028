"""Layer normalization and RMS normalization, computed in float32 at least."""

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
