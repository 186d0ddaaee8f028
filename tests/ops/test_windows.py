"""Windows: which slots belong to them, and that gathering and scattering lose nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.attend import AttentionSpec, attend, make_memory
from attention_jax.ops.scores import score_dot
from attention_jax.ops.windows import (
    QUERIES_AT_ONCE,
    LocalWindow,
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


def local(place):
    return AttentionSpec(score_dot, pattern=LocalWindow(place))


def near(params, query, memory, positions):
    return window_around(jnp.broadcast_to(positions, query.shape[:-1]) * 0.5, 2)


def ask(spec, queries, keys, mask, rows, bias):
    memory = make_memory(spec, {}, keys, keys, mask)
    return attend(spec, {}, queries, memory, mask=rows, bias=bias)[0]


def test_many_queries_are_answered_as_each_alone(numpy_rng):
    sizes = (2, 2 * QUERIES_AT_ONCE + 3, 4), (2, 12, 4), (2, 1, 12)
    queries, keys, bias = (jnp.asarray(numpy_rng.normal(size=size)) for size in sizes)
    mask = jnp.arange(12) < jnp.array([[12], [7]])
    rows = jnp.asarray(numpy_rng.uniform(size=(queries.shape[1], 12)) < 0.8)
    spec = local(near)
    together = ask(spec, queries, keys, mask, rows, bias)
    assert together.weights.shape == (2, queries.shape[1], 12)
    assert together.aux["center"].shape == together.aux["reach"].shape == queries.shape[:2]
    memory = make_memory(spec, {}, keys, keys, mask)
    for index in range(queries.shape[1]):
        own = slice(index, index + 1)
        alone, _ = attend(
            spec, {}, queries[:, own], memory, mask=rows[own], bias=bias,
            positions=jnp.arange(index, index + 1),
        )  # fmt: skip
        for name in ("context", "weights", "scores"):
            expected = getattr(alone, name)
            np.testing.assert_allclose(getattr(together, name)[:, own], expected, atol=1e-6)


def test_gradients_through_many_queries_are_those_through_few(numpy_rng):
    sizes = (2, QUERIES_AT_ONCE + 5, 4), (2, 9, 4), (2, QUERIES_AT_ONCE + 5, 4)
    queries, keys, factors = (jnp.asarray(numpy_rng.normal(size=size)) for size in sizes)
    mask = jnp.ones((2, 9), bool)

    def total(queries, keys, first):
        parts = jnp.split(queries, [first], axis=1)
        starts = (0, first)
        found = [
            attend(local(near), {}, part, make_memory(local(near), {}, keys, keys, mask),
                   positions=start + jnp.arange(part.shape[1]))[0].context
            for part, start in zip(parts, starts, strict=True)
        ]  # fmt: skip
        return jnp.sum(factors * jnp.concatenate(found, axis=1))

    gradients = jax.grad(total, (0, 1))
    for found, expected in zip(
        gradients(queries, keys, 0), gradients(queries, keys, QUERIES_AT_ONCE), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_windows_of_all_queries_are_never_in_memory_together():
    rows, queries, slots, depth = 4, 64, 64, 128

    def loss(vectors, keys):
        mask = jnp.ones(keys.shape[:-1], bool)
        return ask(local(wide), vectors, keys, mask, None, None).context.sum()

    def wide(params, query, memory, positions):
        return window_around(jnp.broadcast_to(positions, query.shape[:-1]) * 1.0, 10)

    shapes = [jax.ShapeDtypeStruct((rows, n, depth), jnp.float32) for n in (queries, slots)]
    compiled = jax.jit(jax.grad(loss, (0, 1))).lower(*shapes).compile()
    gathered = 4 * rows * queries * 21 * depth  # bytes of all windows' keys
    assert compiled.memory_analysis().temp_size_in_bytes < gathered
