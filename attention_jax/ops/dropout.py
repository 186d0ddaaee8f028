"""Dropout as factors: arrays of zeros and 1 / (1 - rate) that are multiplied onto activations.

Drawn outside of recurrences, so that steps stay pure and no key is carried through a scan.
"""

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from attention_jax.types import Array, Call


def dropout_factors(
    call: Call, rate: float, shape: tuple[int, ...], dtype: DTypeLike
) -> Array | None:
    """Dropout: draws the factors of a call, or returns None where nothing is dropped.

    Raises:
      ValueError: If factors are needed and there is no key.
    """
    if not call.train or rate == 0.0:
        return None
    if call.rng is None:
        raise ValueError("rng: expected a key, because dropout is on, found None")
    # Scaled by what is kept, so that expectations are those of a call without dropout.
    kept = jax.random.bernoulli(call.rng, 1.0 - rate, shape)
    return jnp.where(kept, jnp.asarray(1.0 / (1.0 - rate), dtype), jnp.zeros((), dtype))


def scale(values: Array, factors: Array | None) -> Array:
    """Multiplies by dropout factors, if there are any."""
    return values if factors is None else values * factors
