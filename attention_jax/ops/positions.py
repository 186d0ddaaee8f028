"""Positions as vectors, for models that see the order of tokens in nothing else."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def sinusoidal_positions(
    positions: Int[Array, "*T"], depth: int
) -> Float[Array, "*T {depth}"]:
    """Writes positions as sines and cosines whose wavelengths grow with the channel.

    vector[2i] = sin(position / 10000^(2i / depth))
    vector[2i + 1] = cos(position / 10000^(2i / depth))

    Args:
      positions: Any whole numbers, the first one of a sequence being 0.
      depth: How many channels there are.

    Returns:
      One vector for each position, float32.

    Source:
      Vaswani et al. (2017), section 3.5.

    Deviations:
      None.
    """
    channels = jnp.arange(depth)
    rates = 10000.0 ** (-(channels - channels % 2) / depth)
    angles = positions[..., None].astype(jnp.float32) * rates
    return jnp.where(channels % 2 == 0, jnp.sin(angles), jnp.cos(angles))
