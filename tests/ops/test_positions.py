"""Positions: sinusoids, rotations, slopes, and distances inside and outside of windows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.positions import (
    alibi_slopes,
    first_position,
    relative_buckets,
    rotate,
    sinusoidal_positions,
    slot_offsets,
    slots_at,
)
from attention_jax.types import Memory


def test_sinusoidal_positions_are_those_of_the_formula(numpy_rng):
    positions = numpy_rng.integers(0, 500, (2, 3))
    for depth in (6, 7):
        expected = np.zeros((2, 3, depth))
        for channel in range(depth):
            angle = positions / 10000 ** (2 * (channel // 2) / depth)
            expected[..., channel] = np.cos(angle) if channel % 2 else np.sin(angle)
        found = sinusoidal_positions(jnp.asarray(positions), depth)
        np.testing.assert_allclose(found, expected, atol=2e-5)
        apart = np.concatenate([expected[..., 0::2], expected[..., 1::2]], -1)
        found = sinusoidal_positions(jnp.asarray(positions), depth, "halves")
        np.testing.assert_allclose(found, apart, atol=2e-5)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("interleaved", [-2.23474169, 0.07700375, 2.91940535, 4.05919603]),
        ("halves", [-3.14403912, 1.91960535, -0.33914308, 4.03919736]),
    ],
)
def test_rotations_by_hand(layout, expected):
    vector = jnp.array([[1.0, 2.0, 3.0, 4.0]])
    np.testing.assert_allclose(
        rotate(vector, jnp.array([2]), 10000.0, layout)[0], expected, rtol=1e-5
    )


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_rotated_products_depend_on_distances_only(layout):
    x, y = jnp.array([[1.0, 2.0, 3.0, 4.0]]), jnp.array([[0.5, -1.0, 2.0, 1.0]])

    def product(p, q):
        pair = (rotate(v, jnp.array([at]), 10000.0, layout) for v, at in ((x, p), (y, q)))
        return jnp.sum(next(pair) * next(pair))

    np.testing.assert_allclose(product(5, 3), product(2, 0), rtol=1e-5)
    if layout == "interleaved":
        np.testing.assert_allclose(product(5, 3), 8.70363213, rtol=1e-5)


def test_rotation_keeps_the_type_and_computes_angles_in_float32():
    vector = jnp.ones((1, 4), jnp.bfloat16)
    found = rotate(vector, jnp.array([1001]), 10000.0, "halves")
    assert found.dtype == jnp.bfloat16
    exact = rotate(jnp.ones((1, 4)), jnp.array([1001]), 10000.0, "halves")
    np.testing.assert_allclose(found.astype(np.float32), exact, atol=0.01)


def test_slopes_are_the_authors():
    np.testing.assert_allclose(alibi_slopes(8), 2.0 ** -np.arange(1, 9))
    np.testing.assert_allclose(alibi_slopes(6), [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125])
    np.testing.assert_allclose(alibi_slopes(1), [2.0**-8])


def test_offsets_point_from_queries_to_slots():
    memory = Memory(jnp.zeros((1, 3, 2)), jnp.zeros((1, 3, 2)), jnp.ones((1, 3), bool))
    found = slot_offsets(memory, jnp.array([0, 2]))
    np.testing.assert_array_equal(found, [[0, 1, 2], [-2, -1, 0]])
    slots = jnp.array([[[-1, 0], [1, 2]]])
    windows = jax.tree.map(lambda leaf: leaf, Memory(0, 0, jnp.ones((1, 2, 2)), {"slots": slots}))
    found = slot_offsets(windows, jnp.array([[0], [2]]))
    np.testing.assert_array_equal(found, [[[[-1, 0]], [[-1, 0]]]])
    blocks = Memory(0, 0, jnp.ones((1, 2, 2)), {"slots": slots[0]})
    found = slot_offsets(blocks, jnp.array([[0, 1], [2, 3]]))
    np.testing.assert_array_equal(found, [[[-1, 0], [-2, -1]], [[-1, 0], [-2, -1]]])


def test_slots_are_found_by_their_positions():
    mask = jnp.asarray([[True] * 4, [True, False, True, False]])
    aux = {"positions": jnp.asarray([[7, 4, 9, 5], [7, 4, 9, 7]])}  # in padding, any
    memory = Memory(jnp.zeros((2, 4, 1)), jnp.zeros((2, 4, 1)), mask, aux)
    found = slots_at(memory, jnp.asarray([[4, 5, 6, 7, 8, 9, -1]] * 2))
    np.testing.assert_array_equal(found, [[1, 3, 4, 0, 4, 2, 4], [4, 4, 4, 0, 4, 2, 4]])
    np.testing.assert_array_equal(first_position(memory), [4, 7])
    nothing = Memory(memory.keys, memory.values, jnp.zeros_like(mask), aux)
    np.testing.assert_array_equal(first_position(nothing), [0, 0])
    offsets = slot_offsets(memory, jnp.asarray([5]))
    np.testing.assert_array_equal(offsets[:, 0], [[2, -1, 4, 0], [2, -1, 4, 2]])


def test_buckets_are_those_of_t5():
    both = relative_buckets(32, 128, both_ways=True)[128:]  # from the query on
    assert [*both[:9]] == [0, *range(17, 25)]
    bounds = np.flatnonzero(np.diff(both)) + 1
    assert [*bounds] == [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    before = relative_buckets(32, 128, both_ways=True)[128::-1]
    assert [*before[1:]] == [*(both[1:] - 16)]
    causal = relative_buckets(32, 128, both_ways=False)
    assert not causal[128:].any()
    assert [*causal[128:111:-1]] == [*range(17)]
    assert causal[0] == 31
