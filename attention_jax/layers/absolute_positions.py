"""Absolute positions: what is added to embedded tokens so that their order can be seen.

  learned            a vector of its own for each of the first `max_positions` positions; later ones
                     share the last (Gehring et al. 2017, "A convolutional encoder model",
                     section 3.1)
  sinusoidal         sines and cosines by turns (Vaswani et al. 2017, section 3.5)
  sinusoidal_halves  all sines, then all cosines, as in Marian
  none               nothing
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from attention_jax.layers.parameters import Parameter
from attention_jax.ops.lookup import look_up
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.positions import sinusoidal_positions
from attention_jax.ops.products import add_bias
from attention_jax.types import Array, Params

_LAYOUTS = {"sinusoidal": "interleaved", "sinusoidal_halves": "halves"}
POSITIONS = ("learned", *_LAYOUTS, "none")
MAX_POSITIONS = 1024


def check_positions(positions: str, max_positions: int, default: int = MAX_POSITIONS) -> None:
    """Raises `ValueError` for a number of learned positions where none are learned."""
    if positions != "learned" and max_positions != default:
        raise ValueError(
            "max_positions: expected only with learned positions, found "
            f"{max_positions} with {positions!r}"
        )


def position_parameters(positions: str, max_positions: int, depth: int) -> dict[str, Any]:
    """Position embeddings: returns the parameters, one row for each learned position."""
    if positions != "learned":
        return {}
    return {"positions": Parameter.of("embedding", positions=max_positions, embed=depth)}


def place(
    positions: str, params: Params, embedded: Float[Array, "*B T D"], places: Int[Array, "T"]
) -> Float[Array, "*B T D"]:
    """Adds the vectors of positions to embedded tokens."""
    if positions == "learned":
        table = params["positions"]
        return add_bias(embedded, look_up(table, jnp.minimum(places, table.shape[0] - 1)))
    if positions in _LAYOUTS:
        vectors = sinusoidal_positions(places, embedded.shape[-1], _LAYOUTS[positions])
        return embedded + vectors.astype(embedded.dtype)
    return embedded


def add_positions(
    positions: str, params: Params, embedded: Float[Array, "B S D"], mask: Bool[Array, "B S"]
) -> Float[Array, "B S D"]:
    """Adds its position to every embedded token, counted from 0; padding becomes zeros."""
    placed = place(positions, params, embedded, jnp.arange(embedded.shape[1]))
    return zero_padding(placed, mask)
