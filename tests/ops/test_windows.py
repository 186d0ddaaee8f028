"""Windows: which slots belong to them, and that gathering and scattering lose nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.windows import (
    gather_from_rows,
    gather_window,
    scatter_window,
    window_around,
)
from attention_jax.types import Memory


@pytest.mark.parametrize("half_width", [0, 1, 4])
@pytest.mark.parametrize("whole_slots", [False, True])
def test_window_around_holds_the_slots_of_the_formula(half_width, whole_slots):
    centers = np.arange(0, 9, 0.25)
    window = window_around(jnp.asarray(centers)[None], half_width, whole_slots=whole_slots)
    found, slots = jax.tree.map(np.asarray, window), np.arange(-10, 30)
    for index, center in enumerate(centers):
        middle = np.floor(center) if whole_slots else center
        expected = slots[np.abs(slots - middle) <= half_width]
        np.testing.assert_array_equal(found.slots[0, index][found.inside[0, index]], expected)
    assert found.slots.shape == (1, 36, 2 * half_width + 1)


def memory_of(rng, *batch):
    keys, values = rng.normal(size=(*batch, 5, 3)), rng.normal(size=(*batch, 5, 2))
    mask = np.broadcast_to(np.arange(5) < 4, (*batch, 5))
    return Memory(jnp.asarray(keys), jnp.asarray(values), jnp.asarray(mask))


@pytest.mark.parametrize("beams", [None, 3])
def test_gather_window_returns_each_query_its_slots(beams, numpy_rng):
    memory = memory_of(numpy_rng, *([2] if beams is None else [2, 1]))
    batch = (2,) if beams is None else (2, beams)
    center = jnp.asarray(numpy_rng.uniform(0, 5, size=(*batch, 4)), jnp.float32)
    window = window_around(center, 2)
    small = jax.tree.map(np.asarray, jax.jit(gather_window)(memory, window))
    assert small.keys.shape == (*batch, 4, 5, 3) and small.values.shape == (*batch, 4, 5, 2)
    memory, window = jax.tree.map(np.asarray, (memory, window))
    for index in np.ndindex(*window.slots.shape):
        row = index[:1] if beams is None else (index[0], 0)
        slot = int(window.slots[index])
        is_real = 0 <= slot < 5 and bool(memory.mask[(*row, slot)])
        assert bool(small.mask[index]) == is_real
        if is_real:
            np.testing.assert_array_equal(small.keys[index], memory.keys[(*row, slot)])
            np.testing.assert_array_equal(small.values[index], memory.values[(*row, slot)])
    np.testing.assert_array_equal(small.aux["slots"], window.slots)


def test_scatter_window_puts_weights_back():
    slots = jnp.asarray([[[-1, 0, 1], [3, 4, 5]]])
    weights = jnp.asarray([[[9.0, 1.0, 2.0], [3.0, 4.0, 9.0]]])
    np.testing.assert_array_equal(
        scatter_window(weights, slots, 5), [[[1, 2, 0, 0, 0], [0, 0, 0, 3, 4]]]
    )
    filled = scatter_window(weights, slots, 5, fill=-1.0)
    np.testing.assert_array_equal(filled, [[[1, 2, -1, -1, -1], [-1, -1, -1, 3, 4]]])
    gradient = jax.grad(lambda weights: scatter_window(weights, slots, 5).sum())(weights)
    np.testing.assert_array_equal(gradient, [[[0, 1, 1], [1, 1, 0]]])


def test_gather_from_rows_broadcasts_over_batch():
    rows = jnp.arange(10.0).reshape(2, 5)
    slots = jnp.asarray([[[1, 2], [3, 4]], [[0, 1], [4, 5]]])
    np.testing.assert_array_equal(
        gather_from_rows(rows, slots), [[[1, 2], [8, 9]], [[0, 1], [9, 9]]]
    )


def test_moving_center_moves_only_the_window():
    center = jnp.asarray([[2.25]])
    moved, window = window_around(center + 1, 2), window_around(center, 2)
    np.testing.assert_array_equal(moved.slots, window.slots + 1)
