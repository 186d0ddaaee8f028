"""Gradient spikes: skips an update whose gradient norm stands out among the last ones.

An update is skipped where

    ||g_t||  >  r * median(||g|| of the last 64 updates that were made)

Clipping bounds how far such an update goes, but not in which direction. The norm is compared and
not the loss, because the update is made of the gradient, and because a loss may be near zero or
negative. The median does not follow single outliers, and norms of skipped updates do not enter it.
Should gradients stay that large, training stops: see `max_consecutive_skipped` of `Meter`.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

_WINDOW = 64
_FEWEST = 16  # before that a median says little, and norms change quickly


def start_norms(max_ratio: float) -> Float[Array, " W"] | None:
    """Returns the window of norms before the first update, or None if no update is ever skipped.

    Args:
      max_ratio: r; 0 skips no update.
    """
    return jnp.full(_WINDOW, jnp.nan, float) if max_ratio else None


def is_spike(
    norms: Float[Array, " W"] | None, norm: Float[Array, ""], max_ratio: float
) -> Bool[Array, ""]:
    """Returns whether an update is to be skipped; never among the first 16.

    Args:
      norms: Gradient norms of the last updates that were made; NaN in places not yet filled.
      norm: Gradient norm of this update.
      max_ratio: r.
    """
    if norms is None:
        return jnp.bool_(False)
    known = jnp.isfinite(norms).sum()
    return (known >= _FEWEST) & (norm > max_ratio * jnp.nanmedian(norms))


def add_norm(
    norms: Float[Array, " W"] | None, norm: Float[Array, ""], made: Int[Array, ""]
) -> Float[Array, " W"] | None:
    """Enters the gradient norm of an update that is made into the window of norms.

    Args:
      norms: As for `is_spike`.
      norm: Gradient norm of the update.
      made: Updates that were made before it.
    """
    # A ring buffer: the newest norm overwrites the oldest.
    return None if norms is None else norms.at[made % len(norms)].set(norm)
