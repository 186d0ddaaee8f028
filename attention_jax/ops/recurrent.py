"""Recurrent cells as pure steps, and their run over padded sequences.

A cell's carry is a dict whose entry `hidden` is its output. A cell's input has already been
multiplied by its input kernel, for all steps at once; a step multiplies the hidden state only.

A step takes that input gate by gate, as separate arrays. A loop that cuts the gates out of one
wide array at every step is compiled for CPUs into scalar code, and takes up to twice as long.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float

from attention_jax.ops.deferred_scan import deferred_scan
from attention_jax.ops.products import add_bias
from attention_jax.types import Params, State

Gates = tuple[Array, ...]


class Cell(NamedTuple):
    """Recurrent cell: its step, and the layout of its carry and of its projected input.

    Attributes:
      num_gates: How many blocks of the hidden depth its projected input holds.
      entries: Names of the carry's entries, `hidden` first.
      step: (params, carry, gates of the projected input, variational dropout or None) -> carry.
    """

    num_gates: int
    entries: tuple[str, ...]
    step: Callable[[Params, State, Gates, Array | None], State]

    def split(self, projected: Float[Array, "*B G"]) -> Gates:
        """Cuts a projected input into its gates, `*B D` each."""
        return tuple(jnp.split(projected, self.num_gates, axis=-1))

    def fed(self, gates: Gates, product: Float[Array, "*B G"]) -> Gates:
        """Adds to projected inputs what else is read, projected too: a part of a concatenation."""
        return tuple(map(jnp.add, gates, self.split(product)))

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike = float) -> State:
        """Returns the carry before the first step; `shape` ends in the hidden depth."""
        return {name: jnp.zeros(shape, dtype) for name in self.entries}


def gru_step(
    params: Params,
    carry: State,
    gates: tuple[Float[Array, "*B D"], ...],
    keep: Float[Array, "*B D"] | None = None,
) -> dict[str, Float[Array, "*B D"]]:
    """GRU: advances a gated recurrent unit that resets after the product.

    r = sig(x_r + h U_r)        z = sig(x_z + h U_z)
    candidate = tanh(x_n + r * (h U_n + b_n))
    h' = z * h + (1 - z) * candidate

    Args:
      params: `recurrent` `D 3D` (U_r, U_z, U_n side by side) and `candidate_bias` `D` (b_n).
      carry: `hidden` `*B D`.
      gates: x_r, x_z and x_n, input biases included.
      keep: Factors of the hidden state where it meets U: variational dropout.

    Returns:
      The new carry.

    Source:
      Cho et al. (2014), appendix A, in the form of the decoder's candidate. Where a paper writes
      (1 - z) * h + z * candidate, its z is one minus this one.
    """
    hidden = carry["hidden"]
    reset_in, update_in, candidate_in = gates
    reset, update, candidate = jnp.split(_keep(hidden, keep) @ params["recurrent"], 3, -1)
    reset = jax.nn.sigmoid(reset_in + reset)
    update = jax.nn.sigmoid(update_in + update)
    candidate = jnp.tanh(candidate_in + reset * add_bias(candidate, params["candidate_bias"]))
    # z h + (1 - z) candidate, with one product instead of two.
    return {"hidden": candidate + update * (hidden - candidate)}


def gru_reset_before_step(
    params: Params,
    carry: State,
    gates: tuple[Float[Array, "*B D"], ...],
    keep: Float[Array, "*B D"] | None = None,
) -> dict[str, Float[Array, "*B D"]]:
    """GRU: advances a gated recurrent unit that resets before the product.

    r = sig(x_r + h U_r)        z = sig(x_z + h U_z)
    candidate = tanh(x_n + (r * h) U_n)
    h' = z * h + (1 - z) * candidate

    Args:
      params: `recurrent` `D 3D`: U_r, U_z, U_n side by side.
      carry: `hidden` `*B D`.
      gates: x_r, x_z and x_n, biases included.
      keep: Factors of the hidden state where it meets U: variational dropout.

    Returns:
      The new carry.

    Source:
      Cho et al. (2014), eq. 5-8; Bahdanau et al. (2015), appendix A.1.1. Where a paper writes
      (1 - z) * h + z * candidate, its z is one minus this one.
    """
    hidden = carry["hidden"]
    # Only what meets a matrix is dropped; the state that is carried stays whole.
    kept, depth = _keep(hidden, keep), hidden.shape[-1]
    reset_in, update_in, candidate_in = gates
    # The candidate's product has to wait for the reset gate, so that there are two of them.
    reset, update = jnp.split(kept @ params["recurrent"][:, : 2 * depth], 2, axis=-1)
    reset = jax.nn.sigmoid(reset_in + reset)
    update = jax.nn.sigmoid(update_in + update)
    candidate = (reset * kept) @ params["recurrent"][:, 2 * depth :]
    candidate = jnp.tanh(candidate_in + candidate)
    return {"hidden": candidate + update * (hidden - candidate)}


def lstm_step(
    params: Params,
    carry: State,
    gates: tuple[Float[Array, "*B D"], ...],
    keep: Float[Array, "*B D"] | None = None,
) -> dict[str, Float[Array, "*B D"]]:
    """LSTM: advances a long short-term memory by one step.

    i, f, o = sig(x_i + h U_i), sig(x_f + h U_f), sig(x_o + h U_o)
    cell' = f * cell + i * tanh(x_g + h U_g)        h' = o * tanh(cell')

    Args:
      params: `recurrent` `D 4D`: U_i, U_f, U_g, U_o side by side.
      carry: `hidden` and `cell`, `*B D`.
      gates: x_i, x_f, x_g and x_o, biases included.
      keep: Factors of the hidden state where it meets U: variational dropout.

    Returns:
      The new carry.

    Source:
      Hochreiter and Schmidhuber (1997) with the forget gate of Gers et al. (2000).

    Deviations:
      No peephole connections, as in Sutskever et al. (2014) and Luong et al. (2015).
    """
    # All four gates in one product, `*B 4D`.
    products = jnp.split(_keep(carry["hidden"], keep) @ params["recurrent"], 4, axis=-1)
    # i, f, g and o of the equations.
    write, forget, candidate, output = map(jnp.add, gates, products)
    cell = jax.nn.sigmoid(forget) * carry["cell"] + jax.nn.sigmoid(write) * jnp.tanh(candidate)
    return {"hidden": jax.nn.sigmoid(output) * jnp.tanh(cell), "cell": cell}


def _keep(hidden: Array, keep: Array | None) -> Array:
    return hidden if keep is None else hidden * keep


CELLS: Mapping[str, Cell] = {
    "gru": Cell(3, ("hidden",), gru_step),
    "gru_reset_before": Cell(3, ("hidden",), gru_reset_before_step),
    "lstm": Cell(4, ("hidden", "cell"), lstm_step),
}


def run_cell(
    cell: Cell,
    params: Params,
    projected: Float[Array, "B S G"],
    mask: Bool[Array, "B S"],
    *,
    reverse: bool = False,
    keep: Float[Array, "B D"] | None = None,
) -> tuple[Float[Array, "B S D"], State]:
    """Recurrent layer: runs a cell over padded sequences.

    At padding the carry stays as it is, so that a run from right to left starts at each
    sequence's own last token, and the final carry of a run from left to right is the one after it.

    Args:
      cell: The cell.
      params: Its recurrent parameters.
      projected: Its inputs, already multiplied by the input kernel.
      mask: True at real tokens.
      reverse: Whether to run from right to left.
      keep: Variational dropout: the hidden state's factors, the same at all steps.

    Returns:
      (hidden states, zero at padding; final carry).
    """
    depth = params["recurrent"].shape[0]
    start = cell.zeros((projected.shape[0], depth), projected.dtype)

    def step(constants: tuple, carry: State, inputs: tuple) -> tuple[State, Array]:
        params, keep = constants
        gates, is_real = inputs
        new = cell.step(params, carry, gates, keep)
        # B -> B 1: at padding every channel of the carry stays.
        is_real = is_real[:, None]
        new = {name: jnp.where(is_real, new[name], carry[name]) for name in cell.entries}
        return new, new["hidden"]  # carried on, and kept of this step

    inputs = (cell.split(jnp.swapaxes(projected, 0, 1)), jnp.swapaxes(mask, 0, 1))  # time first
    final, hidden = deferred_scan(step, (params, keep), start, inputs, reverse=reverse)
    hidden = jnp.swapaxes(hidden, 0, 1)
    # The carry that stood still at padding would be repeated there otherwise.
    return jnp.where(mask[..., None], hidden, jnp.zeros((), hidden.dtype)), final
