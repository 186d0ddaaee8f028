"""The fused path of dot products equals the open one, in blocks and by the library."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops import fused_dot
from attention_jax.ops.normalizers import masked_softmax
from attention_jax.ops.scores import scaled_dot_scores
from tests.derivatives import assert_derivatives_are_those_of

B, T, S, D = 2, 7, 5, 4


def plain(query, keys, values, mask):
    return masked_softmax(scaled_dot_scores(query, keys), mask) @ values


def arrays(value_dim=D):
    rng = np.random.default_rng(0)
    query, keys, values = (
        jnp.asarray(rng.normal(size=(B, *shape)), jnp.float32)
        for shape in ((T, D), (S, D), (S, value_dim))
    )
    mask = jnp.asarray(rng.random((B, T, S)) < 0.6).at[1, 2].set(False).at[0].set(True)
    return query, keys, values, mask


def with_gradients(function, *arguments):
    def loss(*floats):
        context = function(*floats, arguments[-1])
        return jnp.sin(context).sum(), context

    return jax.jit(jax.value_and_grad(loss, (0, 1, 2), has_aux=True))(*arguments[:-1])


@pytest.mark.parametrize("rows", [2, 3, 128])
def test_blocks_equal_the_open_path(monkeypatch, rows):
    monkeypatch.setattr(fused_dot, "_SHORT", 0)
    monkeypatch.setattr(fused_dot, "_BLOCK", rows * S)
    check(fused_dot._on_cpu, *arrays(3))


def test_second_derivatives_and_forward_mode_in_blocks(monkeypatch):
    monkeypatch.setattr(fused_dot, "_SHORT", 0)
    monkeypatch.setattr(fused_dot, "_BLOCK", 3 * S)
    *floats, mask = arrays(3)

    def total(function):
        return lambda point: (function(*point, mask) ** 2).sum()

    assert_derivatives_are_those_of(total(plain), total(fused_dot._on_cpu), tuple(floats))


@pytest.mark.parametrize("short", [0, 128])
def test_what_is_shared_is_as_if_repeated(monkeypatch, short):
    monkeypatch.setattr(fused_dot, "_SHORT", short)
    query, keys, values, mask = arrays(3)
    heads = jnp.stack([query, 2 * query], 1)

    def shared(query, keys, values, mask):
        return fused_dot._on_cpu(query, keys[:, None], values[:, None], mask[:, None, :1])

    def repeated(query, keys, values, mask):
        keys, values = (jnp.stack([array] * 2, 1) for array in (keys, values))
        return plain(query, keys, values, jnp.broadcast_to(mask[:, None, :1], (B, 2, T, S)))

    found, expected = (with_gradients(f, heads, keys, values, mask) for f in (shared, repeated))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_low_precision_stays_low_outside_the_softmax(monkeypatch):
    monkeypatch.setattr(fused_dot, "_SHORT", 0)
    *floats, mask = arrays()
    low = [array.astype(jnp.bfloat16) for array in floats]
    (_, context), gradients = with_gradients(fused_dot._on_cpu, *low, mask)
    assert {array.dtype for array in (context, *gradients)} == {jnp.dtype("bfloat16")}
    np.testing.assert_allclose(context.astype(jnp.float32), plain(*floats, mask), atol=0.05)


def test_low_precision_is_lost_no_more_in_blocks_than_elsewhere(monkeypatch, numpy_rng):
    """The factor of the scores is inexact in bfloat16, unless the depth is a power of four."""
    query, keys, values = (1.5 * jnp.asarray(numpy_rng.normal(size=(40, 50, 32))) for _ in range(3))
    low = [array.astype(jnp.bfloat16) for array in (query, keys, values)]
    mask = jnp.ones((40, 50, 50), bool)
    exact = plain(*(array.astype(jnp.float32) for array in low), mask)

    def error(short):
        monkeypatch.setattr(fused_dot, "_SHORT", short)
        return float(jnp.sqrt(jnp.mean((fused_dot._on_cpu(*low, mask) - exact) ** 2)))

    assert error(short=0) < 1.1 * error(short=64)


@pytest.mark.parametrize("num_queries", [1, 300])
def test_without_slots_there_are_zeros(num_queries):
    query, keys, values = jnp.ones((2, num_queries, 4)), jnp.ones((2, 0, 4)), jnp.ones((2, 0, 3))
    context = fused_dot.fused_dot_context(query, keys, values, jnp.ones((2, 1, 0), bool))
    np.testing.assert_array_equal(context, jnp.zeros((2, num_queries, 3)))


@pytest.mark.parametrize("value_dim", [D, D - 1, D + 2])
def test_library_equals_the_open_path(value_dim):
    check(fused_dot._by_library, *arrays(value_dim))


@pytest.mark.parametrize("value_dim", [D, 3])
def test_chosen_path_equals_the_open_path(value_dim):
    check(fused_dot.fused_dot_context, *arrays(value_dim))


def check(function, *arguments):
    found, expected = with_gradients(function, *arguments), with_gradients(plain, *arguments)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert np.all(np.asarray(found[0][1])[1, 2] == 0)  # a row that may attend to nothing
