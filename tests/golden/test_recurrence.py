"""One step of each gated recurrent unit, and maxout, worked out by hand."""

import jax.numpy as jnp
import numpy as np

from attention_jax.layers.deep_output import maxout
from attention_jax.ops.recurrent import gru_reset_before_step, gru_step

# x = [1 -1], h = [.5 -.25]; matrices are written as in the papers (W x), hence transposed.
X, HIDDEN = np.asarray([1, -1]), np.asarray([0.5, -0.25])
W, U = np.transpose([[0.1, 0.2], [0.3, 0.4]]), np.transpose([[0.5, -0.5], [0.25, 0.75]])
W_UPDATE, W_RESET, U_GATE = 0.2 * np.eye(2), -0.2 * np.eye(2), np.full((2, 2), 0.1)


def step(function, sign=1, **params):
    """Runs one step; a `sign` of -1 turns the update gate into one minus itself."""
    blocks = (X @ W_RESET, sign * (X @ W_UPDATE), X @ W)
    gates = tuple(jnp.asarray(block, jnp.float32) for block in blocks)
    recurrent = np.concatenate([U_GATE, sign * U_GATE, U], 1)
    params = {"recurrent": jnp.asarray(recurrent, jnp.float32), **params}
    carry = {"hidden": jnp.asarray(HIDDEN, jnp.float32)}
    return function(params, carry, gates)["hidden"]


def test_gru_reset_before_the_product_keeps_by_its_update_gate():
    """z = [.55601389 .45636131], r = 1 - z; tanh(W x + U (r h)) = [.0833979 -.14615325]."""
    found = step(gru_reset_before_step)
    np.testing.assert_allclose(found, [0.31503446, -0.19354489], rtol=1e-6)


def test_gru_reset_before_the_product_in_the_papers_convention():
    """h' = (1 - z) h + z cand, as Bahdanau et al. write it, is this with -z's pre-activation."""
    found = step(gru_reset_before_step, sign=-1)
    np.testing.assert_allclose(found, [0.26836345, -0.20260836], rtol=1e-6)


def test_gru_reset_after_the_product():
    """tanh(W x + r (U h)) = [.07101575 -.13394116]; h' = z h + (1 - z) cand."""
    update = np.asarray([0.55601389, 0.45636131])
    expected = update * HIDDEN + (1 - update) * np.asarray([0.07101575, -0.13394116])
    found = step(gru_step, candidate_bias=jnp.zeros(2))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_maxout_takes_the_larger_of_two_neighbours():
    values = jnp.asarray([1.0, 3.0, -2.0, -5.0, 0.0, 0.5])
    np.testing.assert_array_equal(maxout(values), [3.0, -2.0, 0.5])
