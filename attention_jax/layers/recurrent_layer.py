"""A layer of a recurrent encoder: a cell read in one direction or in both, side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from attention_jax.layers.cells import cell_parameters
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.products import add_bias
from attention_jax.ops.recurrent import CELLS, run_cell
from attention_jax.types import Array, Call, Params, State

_KEYS = 3  # of a layer: one for its input's dropout, and one for each direction


def layer_parameters(
    layer: int, cell: str, readings: Sequence[str], input_dim: int, hidden_dim: int
) -> dict[str, Mapping[str, Any]]:
    """Returns the parameters of a layer, by the names that they have in an encoder."""
    return {
        f"layer_{layer}_{reading}": cell_parameters(cell, input_dim, hidden_dim)
        for reading in readings
    }


def drop_inputs(vectors: Array, rate: float, layer: int, call: Call) -> Array:
    """Dropout: drops a share of what a layer reads."""
    factors = dropout_factors(call.fold(_KEYS * layer), rate, vectors.shape, vectors.dtype)
    return scale(vectors, factors)


def read_layer(
    params: Params,
    vectors: Array,
    mask: Array,
    *,
    layer: int,
    cell: str,
    readings: Sequence[str],
    recurrent_dropout: float,
    call: Call,
) -> tuple[Array, dict[str, State]]:
    """Recurrent layer: reads vectors `B N E` in each of the directions.

    Args:
      params: Those of the encoder.
      vectors: Zero at padding.
      mask: True at real positions.
      layer: Its number in the encoder.
      cell: Name of its cell.
      readings: The directions, forward first.
      recurrent_dropout: Share of the hidden state that is dropped, the same at all steps.
      call: Mode and key.

    Returns:
      (hidden states of all directions side by side, zero at padding; final carry of each).
    """
    outputs, carries = [], {}
    for side, reading in enumerate(readings):
        weights = params[f"layer_{layer}_{reading}"]
        keep = dropout_factors(
            call.fold(_KEYS * layer + 1 + side),
            recurrent_dropout,
            (vectors.shape[0], weights["recurrent"].shape[0]),
            vectors.dtype,
        )
        # Projected time-major: the narrow input is transposed instead of the wide gates.
        by_time = jnp.swapaxes(vectors, 0, 1)
        projected = add_bias(by_time @ weights["input"], weights["bias"])
        projected = jnp.swapaxes(projected, 0, 1)
        hidden, carries[reading] = run_cell(
            CELLS[cell], weights, projected, mask, reverse=reading == "backward", keep=keep
        )
        outputs.append(hidden)
    # The directions side by side: B N D each -> B N 2D.
    return jnp.concatenate(outputs, axis=-1), carries
