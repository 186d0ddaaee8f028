"""Gradient spikes: updates that stand out among the last ones are skipped.

An update is skipped where

    ||g_t||  >  r * median(||g|| of the last 64 updates that were made)

Clipping bounds how far such an update goes, but not where it goes. The norm is measured, and not
the loss, since it is what an update is made of, and since a loss may be near zero or below it.
The median does not follow single outliers; norms of skipped updates do not count. Where gradients
stay that large, training stops: see `max_consecutive_skipped` of `Meter`.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

_WINDOW = 64
_FEWEST = 16  # before that a median says little, and norms change quickly


def start_norms(max_ratio: float) -> Float[Array, " W"] | None:
    """Returns the norms before the first update, or None where no update is skipped.

    Args:
      max_ratio: r; 0 for none.
    """
    return jnp.full(_WINDOW, jnp.nan, float) if max_ratio else None


def is_spike(
    norms: Float[Array, " W"] | None, norm: Float[Array, ""], max_ratio: float
) -> Bool[Array, ""]:
    """Returns whether an update is to be skipped; never among the first 16.

    Args:
      norms: Of the last updates that were made, NaN where there were not so many.
      norm: Of this one.
      max_ratio: r.
    """
    if norms is None:
        return jnp.bool_(False)
    known = jnp.isfinite(norms).sum()
    return (known >= _FEWEST) & (norm > max_ratio * jnp.nanmedian(norms))


def add_norm(
    norms: Float[Array, " W"] | None, norm: Float[Array, ""], made: Int[Array, ""]
) -> Float[Array, " W"] | None:
    """Returns the norms with that of another update that is made.

    Args:
      norms: As for `is_spike`.
      norm: Of the update.
      made: Updates that were made before it.
    """
    return None if norms is None else norms.at[made % len(norms)].set(norm)
