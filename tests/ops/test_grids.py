"""Grids of cells: their order, convolutions and positions, in NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.grids import (
    as_grid,
    as_pixels,
    as_sequence,
    convolve_grid,
    grid_positions,
)
from attention_jax.ops.positions import sinusoidal_positions

ROWS, COLUMNS, CELL = 2, 3, 4


def test_a_sequence_of_cells_is_columns_from_top_to_bottom(numpy_rng):
    vectors = numpy_rng.normal(size=(1, 5, 3)).astype(np.float32)
    mask = np.asarray([[True, True, True, False, False]])
    given = jnp.asarray(np.where(mask[..., None], vectors, np.nan))
    grid, real = as_grid(given, jnp.asarray(mask), ROWS)
    assert grid.shape == (1, 3, ROWS, 3)
    np.testing.assert_array_equal(grid[0, 1, 0], vectors[0, 2])  # column 1, row 0
    np.testing.assert_array_equal(real[0], [[True, True], [True, False], [False, False]])
    assert not np.asarray(grid)[~np.asarray(real)].any()
    np.testing.assert_array_equal(as_sequence(grid, 5)[0, :3], vectors[0, :3])
    assert as_sequence(grid, 5).shape == (1, 5, 3)


def test_pixels_of_cells_are_put_side_by_side():
    picture = np.arange(COLUMNS * CELL * ROWS * CELL, dtype=np.float32)
    picture = picture.reshape(COLUMNS * CELL, ROWS * CELL)  # x, y
    cells = [
        picture[c * CELL : (c + 1) * CELL, r * CELL : (r + 1) * CELL].ravel()
        for c in range(COLUMNS)
        for r in range(ROWS)
    ]
    grid = np.stack(cells).reshape(1, COLUMNS, ROWS, CELL**2)
    np.testing.assert_array_equal(as_pixels(jnp.asarray(grid), CELL)[0, ..., 0], picture)


WINDOWS = [(1, 1, 0), (3, 1, 1), (5, 1, 2), (3, 2, 0)]


@pytest.mark.parametrize(("width", "stride", "before"), WINDOWS)
def test_a_convolution_sees_a_square_of_places(numpy_rng, width, stride, before):
    grid = numpy_rng.normal(size=(2, 6, 4, 3))
    kernel, bias = numpy_rng.normal(size=(width, width, 3, 5)), numpy_rng.normal(size=5)
    around = ((0, 0), (before, width), (before, width), (0, 0))
    padded = np.pad(grid, around)
    expected = np.zeros((2, 6 // stride, 4 // stride, 5)) + bias
    for c, r in np.ndindex(expected.shape[1:3]):
        for u, v in np.ndindex(width, width):
            seen = padded[:, stride * c + u, stride * r + v]
            expected[:, c, r] += seen @ kernel[u, v]
    given = (jnp.asarray(each, jnp.float32) for each in (grid, kernel.reshape(-1, 5), bias))
    found = convolve_grid(*given, stride)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_positions_tell_column_and_row():
    found = np.asarray(grid_positions(COLUMNS, ROWS, 5))
    across = sinusoidal_positions(jnp.arange(COLUMNS), 3)
    down = sinusoidal_positions(jnp.arange(ROWS), 2)
    for c, r in np.ndindex(COLUMNS, ROWS):
        np.testing.assert_array_equal(found[c, r], np.concatenate([across[c], down[r]]))
