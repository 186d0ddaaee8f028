"""Scores against loops over queries and slots in NumPy float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.scores import (
    _by_query,
    _fused,
    _pull_by_query,
    _pull_fused,
    additive_scores,
    concat_scores,
    dot_scores,
    general_scores,
    location_scores,
    project_general_keys,
    scaled_dot_scores,
)
from tests.derivatives import assert_derivatives_are_those_of

B, T, S, D, Dk, Da = 2, 3, 5, 4, 6, 7


def draw(rng, *shape):
    return rng.normal(size=shape)


def by_loop(score, query, keys):
    pairs = [[[score(q, k) for k in row_keys] for q in row] for row, row_keys in zip(query, keys)]  # noqa: B905
    return np.asarray(pairs)


def f32(*arrays):
    return [jnp.asarray(array, jnp.float32) for array in arrays]


def additive(query, key, vector):
    return vector @ np.tanh(query + key)


def cases(rng):
    query, same, other = draw(rng, B, T, D), draw(rng, B, S, D), draw(rng, B, S, Dk)
    form, kernel = draw(rng, D, Dk), draw(rng, D + Dk, Da)
    vector, hidden, slots = draw(rng, Da), draw(rng, B, T, Da), draw(rng, B, S, Da)
    return {
        "dot": (dot_scores, (query, same), by_loop(np.dot, query, same)),
        "scaled_dot": (
            scaled_dot_scores,
            (query, same),
            by_loop(lambda q, k: q @ k / np.sqrt(D), query, same),
        ),
        "general": (
            general_scores,
            (query, other, form),
            by_loop(lambda q, k: q @ form @ k, query, other),
        ),
        "concat": (
            concat_scores,
            (query, other, kernel, vector),
            by_loop(lambda q, k: vector @ np.tanh(kernel.T @ np.append(q, k)), query, other),
        ),
        "additive": (
            additive_scores,
            (hidden, slots, vector),
            by_loop(lambda q, k: additive(q, k, vector), hidden, slots),
        ),
    }


NAMES = ("dot", "scaled_dot", "general", "concat", "additive")


@pytest.mark.parametrize("name", NAMES)
def test_scores_equal_a_loop(name, numpy_rng):
    function, arguments, expected = cases(numpy_rng)[name]
    scores = function(*f32(*arguments))
    assert scores.dtype == jnp.float32
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_scores_broadcast_over_beams(name, numpy_rng):
    function, (query, keys, *rest), expected = cases(numpy_rng)[name]
    query, keys = np.stack([query, -query], 1), keys[:, None]
    scores = function(*f32(query, keys, *rest))
    assert scores.shape == (B, 2, T, S)
    np.testing.assert_allclose(scores[:, 0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_bfloat16_are_float32(name, numpy_rng):
    function, arguments, expected = cases(numpy_rng)[name]
    scores = function(*(jnp.asarray(array, jnp.bfloat16) for array in arguments))
    assert scores.dtype == jnp.float32
    np.testing.assert_allclose(scores, expected, rtol=0.1, atol=0.3)


def pull_as_here(query, keys, vector, cotangent):
    return jax.vjp(additive_scores, query, keys, vector)[1](cotangent)


@pytest.mark.parametrize("pull", [pull_as_here, _pull_by_query, _pull_fused])
@pytest.mark.parametrize("queries", [1, T])
@pytest.mark.parametrize("beams", [None, 2])
def test_additive_scores_gradients_equal_the_formula(queries, beams, pull, numpy_rng):
    """dq = v sum_s g (1 - th^2), dk = v sum_t g (1 - th^2), dv = sum_ts g th."""
    batch = (B,) if beams is None else (B, beams)
    query, vector = draw(numpy_rng, *batch, queries, Da), draw(numpy_rng, Da)
    keys = draw(numpy_rng, B, *([] if beams is None else [1]), S, Da)
    upstream = draw(numpy_rng, *batch, queries, S)
    hidden = np.tanh(query[..., :, None, :] + keys[..., None, :, :])
    slope = upstream[..., None] * (1 - hidden**2) * vector
    expected_keys = slope.sum(-3) if beams is None else slope.sum(-3).sum(1, keepdims=True)
    expected = (
        slope.sum(-2),
        expected_keys,
        (upstream[..., None] * hidden).reshape(-1, Da).sum(0),
    )
    gradients = pull(*f32(query, keys, vector, upstream))
    for found, wanted in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("queries", [1, T])
def test_second_derivatives_and_forward_mode_of_additive_scores(queries, numpy_rng):
    """Queries, keys and vector all move, for two beams that share the keys."""
    shapes = (B, 2, queries, Da), (B, 1, S, Da), (Da,)
    point = tuple(f32(*(draw(numpy_rng, *shape) for shape in shapes)))

    def total(function):
        return lambda point: (function(*point) ** 2).sum()

    def plain(query, keys, vector):
        return jnp.tanh(query[..., :, None, :] + keys[..., None, :, :]) @ vector

    assert_derivatives_are_those_of(total(plain), total(additive_scores), point, rtol=1e-3)


@pytest.mark.parametrize("pull", [pull_as_here, _pull_by_query, _pull_fused])
def test_gradients_of_bfloat16_over_many_queries_are_those_of_float32(pull):
    """A sum of ones in bfloat16 would end at 256."""
    arrays = [jnp.full(shape, 0.25) for shape in ((1024, 2), (2, 2), (2,))]
    gradient = functools.partial(jax.jit(pull), cotangent=jnp.ones((1024, 2)))
    found = gradient(*(array.astype(jnp.bfloat16) for array in arrays))
    for one, other in zip(found, gradient(*arrays), strict=True):
        assert one.dtype == jnp.bfloat16
        np.testing.assert_allclose(np.asarray(one, np.float32), other, rtol=0.01)


@pytest.mark.parametrize("compute", [_by_query, _fused])
def test_additive_scores_are_the_same_on_a_cpu_and_elsewhere(compute, numpy_rng):
    """A CPU computes them by queries, other devices fused; here both are."""
    query, keys, vector = (draw(numpy_rng, *shape) for shape in ((B, T, Da), (B, S, Da), (Da,)))
    expected = by_loop(lambda q, k: additive(q, k, vector), query, keys)
    found, pullback = jax.vjp(compute, *f32(query, keys, vector))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    upstream = f32(draw(numpy_rng, B, T, S))[0]
    gradients = jax.vjp(additive_scores, *f32(query, keys, vector))[1](upstream)
    for one, other in zip(pullback(upstream), gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_additive_scores_keep_no_hidden_layer_for_the_backward_pass():
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((1, 64, 8), (1, 64, 8), (8,))]
    loss = jax.jit(jax.grad(lambda *arrays: additive_scores(*arrays).sum(), argnums=(0, 1, 2)))
    analysis = loss.lower(*shapes).compile().memory_analysis()
    assert analysis.temp_size_in_bytes < 64 * 64 * 8 * 4 / 2


def test_fused_gradients_of_additive_scores_have_a_hidden_layer_each():
    """One that all three read would be written, as it is where the compiler may share it."""
    shapes = (B, T, Da), (B, S, Da), (Da,), (B, T, S)
    arrays = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    compiled = jax.jit(_pull_fused).lower(*arrays).compile().as_text()
    assert compiled.count(" tanh(") == 3


def test_keys_projected_once_give_the_bilinear_form(numpy_rng):
    query, keys, kernel = (draw(numpy_rng, *s) for s in ((T, D), (S, Dk), (D, Dk)))
    expected = np.einsum("tq,qk,sk->ts", query, kernel, keys)
    query, keys, kernel = f32(query, keys, kernel)
    projected = dot_scores(query, project_general_keys(keys, kernel))
    for found in (projected, general_scores(query, keys, kernel)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_concat_scores_reject_a_kernel_of_other_depths(numpy_rng):
    query, keys, kernel, vector = f32(
        *(draw(numpy_rng, *s) for s in ((T, D), (S, Dk), (D, Da), (Da,)))
    )
    with pytest.raises(ValueError, match=r"kernel: expected 4 \+ 6 rows, found 4"):
        concat_scores(query, keys, kernel, vector)


@pytest.mark.parametrize("columns", [3, 5, 8])
def test_location_scores_read_columns_and_give_no_more(columns, numpy_rng):
    query, kernel = draw(numpy_rng, B, T, D), draw(numpy_rng, D, columns)
    scores = np.asarray(location_scores(*f32(query, kernel), S))
    shared = min(columns, S)
    np.testing.assert_allclose(scores[..., :shared], (query @ kernel)[..., :shared], rtol=1e-5)
    assert scores.shape == (B, T, S) and np.all(scores[..., shared:] == -np.inf)
    places = jnp.asarray([3, -1, 0, 9, 1])
    moved = np.asarray(location_scores(*f32(query, kernel), S, places))
    expected = np.full((B, T, S), -np.inf)
    for slot, place in enumerate(np.asarray(places)):
        if 0 <= place < columns:
            expected[..., slot] = (query @ kernel)[..., place]
    np.testing.assert_allclose(moved, expected, rtol=1e-5)
