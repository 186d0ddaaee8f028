"""Convolutions over a grid: what a slot is made of, in NumPy."""

import jax.numpy as jnp
import numpy as np

from attention_jax.layers.encoders.grid import Config, build
from attention_jax.ops.grids import grid_positions

ROWS, COLUMNS, DEPTH = 2, 3, 4


def test_a_slot_is_its_cell_and_what_stands_around_it(numpy_rng):
    encoder = build(Config(rows=ROWS, num_layers=1), DEPTH)
    cells = numpy_rng.normal(size=(1, COLUMNS * ROWS, DEPTH)).astype(np.float32)
    kernel = numpy_rng.normal(size=(3, 3, DEPTH, DEPTH)).astype(np.float32)
    bias = numpy_rng.normal(size=DEPTH).astype(np.float32)
    weights = {"kernel": jnp.asarray(kernel.reshape(-1, DEPTH)), "bias": jnp.asarray(bias)}
    mask = jnp.ones(cells.shape[:2], bool)
    scale, shift = numpy_rng.normal(size=(2, DEPTH)).astype(np.float32)
    params = {"layer_0": weights, "norm": {"scale": jnp.asarray(scale), "bias": jnp.asarray(shift)}}
    found = encoder.encode(params, jnp.asarray(cells), mask).annotations
    grid = cells.reshape(COLUMNS, ROWS, DEPTH) + np.asarray(grid_positions(COLUMNS, ROWS, DEPTH))
    around = np.pad(grid.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    for c, r in np.ndindex(COLUMNS, ROWS):
        seen = np.einsum("uvd,uvdf->f", around[c : c + 3, r : r + 3], kernel) + bias
        summed = grid[c, r] + np.maximum(seen, 0)
        expected = (summed - summed.mean()) / summed.std() * scale + shift
        np.testing.assert_allclose(found[0, c * ROWS + r], expected, rtol=1e-4, atol=1e-5)
