"""Cells and their runs against loops in NumPy float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.recurrent import CELLS, run_cell
from tests.derivatives import assert_derivatives_are_those_of

B, S, D = 3, 5, 4
every_cell = pytest.mark.parametrize("name", CELLS)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference_step(name, params, carry, projected, keep=1.0):
    """The papers' equations; `keep` multiplies the hidden state where it meets a matrix."""
    hidden = carry["hidden"]
    blocks = np.split(params["recurrent"], params["recurrent"].shape[1] // D, axis=1)
    parts = np.split(projected, len(blocks), axis=-1)
    if name == "lstm":
        i, f, o = (sigmoid(parts[n] + (hidden * keep) @ blocks[n]) for n in (0, 1, 3))
        cell = f * carry["cell"] + i * np.tanh(parts[2] + (hidden * keep) @ blocks[2])
        return {"hidden": o * np.tanh(cell), "cell": cell}
    reset, update = (sigmoid(parts[n] + (hidden * keep) @ blocks[n]) for n in (0, 1))
    if name == "gru":
        inner = reset * ((hidden * keep) @ blocks[2] + params["candidate_bias"])
    else:
        inner = (reset * hidden * keep) @ blocks[2]
    return {"hidden": update * hidden + (1 - update) * np.tanh(parts[2] + inner)}


def draw(name, rng):
    width = CELLS[name].num_gates * D
    params = {"recurrent": rng.normal(size=(D, width)) / 2}
    if name == "gru":
        params["candidate_bias"] = rng.normal(size=D)
    return params, rng.normal(size=(B, S, width))


def f32(tree):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), tree)


@every_cell
@pytest.mark.parametrize("dropped", [False, True])
def test_step_equals_the_equations(name, dropped, numpy_rng):
    params, projected = draw(name, numpy_rng)
    carry = {entry: numpy_rng.normal(size=(B, D)) for entry in CELLS[name].entries}
    keep = 2.0 * numpy_rng.integers(0, 2, size=(B, D)) if dropped else None
    cell = CELLS[name]
    gates = cell.split(f32(projected[:, 0]))
    found = cell.step(f32(params), f32(carry), gates, None if keep is None else f32(keep))
    expected = reference_step(name, params, carry, projected[:, 0], 1.0 if keep is None else keep)
    assert set(found) == set(expected)
    for entry in expected:
        np.testing.assert_allclose(found[entry], expected[entry], rtol=1e-5, atol=1e-6)


@every_cell
@pytest.mark.parametrize("reverse", [False, True])
def test_run_cell_equals_each_row_alone(name, reverse, numpy_rng):
    params, projected = draw(name, numpy_rng)
    lengths = [5, 3, 0]
    mask = np.arange(S) < np.asarray(lengths)[:, None]
    hidden, final = run_cell(
        CELLS[name], f32(params), f32(projected), jnp.asarray(mask), reverse=reverse
    )
    for row, length in enumerate(lengths):
        carry = {entry: np.zeros(D) for entry in CELLS[name].entries}
        expected = np.zeros((S, D))
        for position in reversed(range(length)) if reverse else range(length):
            carry = reference_step(name, params, carry, projected[row, position])
            expected[position] = carry["hidden"]
        np.testing.assert_allclose(hidden[row], expected, rtol=1e-5, atol=1e-6)
        for entry in carry:
            np.testing.assert_allclose(final[entry][row], carry[entry], rtol=1e-5, atol=1e-6)


@every_cell
def test_run_cell_drops_the_same_units_at_all_steps(name, numpy_rng):
    params, projected = draw(name, numpy_rng)
    keep = 2.0 * numpy_rng.integers(0, 2, size=(B, D))
    mask = jnp.ones((B, S), bool)
    hidden, _ = run_cell(CELLS[name], f32(params), f32(projected), mask, keep=f32(keep))
    carry = {entry: np.zeros((B, D)) for entry in CELLS[name].entries}
    for position in range(S):
        carry = reference_step(name, params, carry, projected[:, position], keep)
        np.testing.assert_allclose(hidden[:, position], carry["hidden"], rtol=1e-4, atol=1e-5)


@every_cell
def test_second_derivatives_and_forward_mode_are_those_of_a_loop(name, numpy_rng):
    """With more hidden units than rows, so that gradients of the weights leave the loop."""
    cell, depth = CELLS[name], 12
    params = {"recurrent": 0.3 * numpy_rng.normal(size=(depth, cell.num_gates * depth))}
    if name == "gru":
        params["candidate_bias"] = numpy_rng.normal(size=depth)
    projected = 0.5 * numpy_rng.normal(size=(2, 3, cell.num_gates * depth))
    mask = jnp.asarray([[1, 1, 1], [1, 1, 0]], bool)

    def by_scan(params, projected):
        return run_cell(cell, params, projected, mask)[0]

    def by_loop(params, projected):
        carry, hidden = cell.zeros((2, depth)), []
        for position in range(3):
            new = cell.step(params, carry, cell.split(projected[:, position]), None)
            real = mask[:, position, None]
            carry = {entry: jnp.where(real, new[entry], carry[entry]) for entry in carry}
            hidden.append(jnp.where(real, carry["hidden"], 0.0))
        return jnp.stack(hidden, axis=1)

    def total(function):
        return lambda point: (function(*point) ** 2).sum()

    point = f32(params), f32(projected)
    assert_derivatives_are_those_of(total(by_loop), total(by_scan), point, rtol=2e-3)


def test_zeros_are_a_carry():
    carry = CELLS["lstm"].zeros((2, 3), jnp.bfloat16)
    assert set(carry) == {"hidden", "cell"}
    assert all(leaf.shape == (2, 3) and leaf.dtype == jnp.bfloat16 for leaf in carry.values())
