"""Normalizers against their definitions in NumPy float64: no sorting, no closed forms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_jax.ops.normalizers import (
    NORMALIZERS,
    entmax15,
    gaussian_window,
    masked_softmax,
    sparsemax,
)
from attention_jax.types import Call, Memory
from tests.derivatives import assert_derivatives_are_differences

FUNCTIONS = {"softmax": masked_softmax, "sparsemax": sparsemax, "entmax15": entmax15}
every_function = pytest.mark.parametrize("name", FUNCTIONS)
jitted = {name: jax.jit(function) for name, function in FUNCTIONS.items()}


def bisect(weights_of, low, high):
    """Finds the threshold at which the weights sum to one."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if weights_of(middle).sum() > 1 else (low, middle)
    return weights_of((low + high) / 2)


def reference_row(name, scores):
    if name == "softmax":
        exponentials = np.exp(scores - scores.max())
        return exponentials / exponentials.sum()
    if name == "sparsemax":
        return bisect(lambda t: np.maximum(scores - t, 0), scores.min() - 2, scores.max())
    halves = scores / 2
    return bisect(lambda t: np.maximum(halves - t, 0) ** 2, halves.min() - 2, halves.max())


def reference(name, scores, mask):
    weights = np.zeros_like(scores)
    for row in np.ndindex(scores.shape[:-1]):
        if mask[row].any():
            weights[row][mask[row]] = reference_row(name, scores[row][mask[row]])
    return weights


rows = st.lists(
    st.tuples(st.floats(-30, 30, width=32), st.booleans()), min_size=6, max_size=6
)


@every_function
@settings(max_examples=60)
@given(row=rows)
def test_weights_equal_the_definition(name, row):
    scores, mask = np.asarray([[pair[0] for pair in row]]), np.asarray([[p[1] for p in row]])
    weights = jitted[name](jnp.asarray(scores, jnp.float32), jnp.asarray(mask))
    np.testing.assert_allclose(weights, reference(name, scores, mask), atol=2e-5)
    assert float(weights.sum()) == pytest.approx(float(mask.any()), abs=1e-5)


@every_function
def test_weights_do_not_change_when_all_scores_rise(name, numpy_rng):
    scores, mask = jnp.asarray(numpy_rng.normal(size=(3, 6)), jnp.float32), jnp.ones((3, 6), bool)
    np.testing.assert_allclose(
        FUNCTIONS[name](scores + 1000.0, mask), FUNCTIONS[name](scores, mask), atol=2e-4
    )


@every_function
def test_masked_scores_may_be_anything(name, numpy_rng):
    scores = jnp.asarray(numpy_rng.normal(size=(2, 5)), jnp.float32)
    mask = jnp.asarray([[1, 1, 1, 0, 0], [0, 0, 0, 0, 0]], bool)

    def loss(scores):
        return (FUNCTIONS[name](scores, mask) * jnp.arange(5.0)).sum()

    expected = FUNCTIONS[name](scores, mask), jax.grad(loss)(scores)
    for junk in (jnp.nan, jnp.inf, -jnp.inf, 1e30):
        spoiled = jnp.where(mask, scores, junk)
        np.testing.assert_array_equal(FUNCTIONS[name](spoiled, mask), expected[0])
        np.testing.assert_array_equal(jax.grad(loss)(spoiled), expected[1])
    np.testing.assert_array_equal(expected[0][1], np.zeros(5))
    np.testing.assert_array_equal(expected[1][1], np.zeros(5))
    assert np.all(np.asarray(expected[0])[~np.asarray(mask)] == 0)


@every_function
def test_gradients_equal_finite_differences_of_the_definition(name, numpy_rng):
    scores, upstream = numpy_rng.normal(size=(4, 6)), numpy_rng.normal(size=(4, 6))
    mask = np.ones((4, 6), bool)
    mask[1, 2:4] = False
    loss = lambda scores: (reference(name, scores, mask) * upstream).sum()  # noqa: E731
    expected = np.zeros_like(scores)
    for index in np.ndindex(scores.shape):
        step = np.zeros_like(scores)
        step[index] = 1e-6
        expected[index] = (loss(scores + step) - loss(scores - step)) / 2e-6
    weights = functools.partial(FUNCTIONS[name], mask=jnp.asarray(mask))
    _, pullback = jax.vjp(weights, jnp.asarray(scores, jnp.float32))
    (gradient,) = pullback(jnp.asarray(upstream, jnp.float32))
    np.testing.assert_allclose(gradient, expected, atol=1e-4)
    np.testing.assert_allclose(gradient.sum(-1), np.zeros(4), atol=1e-6)


@every_function
@pytest.mark.parametrize("low", [-2e9, -1e30, -3.4e38])
def test_scores_far_below_zero_are_scores(name, low):
    """What masked slots are given in their place must not be above them."""
    scores = jnp.asarray([[low, low, 0.0, 0.0], [low, -jnp.inf, jnp.inf, jnp.nan]], jnp.float32)
    mask = jnp.asarray([[True, True, False, False]] * 2)
    expected = [[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
    np.testing.assert_allclose(FUNCTIONS[name](scores, mask), expected, rtol=1e-6)
    gradient = jax.grad(lambda scores: (FUNCTIONS[name](scores, mask) * jnp.arange(4.0)).sum())
    assert np.isfinite(gradient(scores)).all() and gradient(scores)[0, 0] == -gradient(scores)[0, 1]
    for allowed in (True, mask):  # minus infinity forbids a slot, and the last one, too
        nothing = FUNCTIONS[name](jnp.full((2, 4), -jnp.inf), jnp.broadcast_to(allowed, (2, 4)))
        np.testing.assert_array_equal(nothing, 0.0)


@every_function
def test_no_slots_or_no_rows_give_no_weights(name):
    for shape in ((2, 0), (0, 3), (0, 0)):
        weights = jax.grad(lambda scores: FUNCTIONS[name](scores, scores > 0).sum())
        assert FUNCTIONS[name](jnp.zeros(shape), jnp.zeros(shape, bool)).shape == shape
        assert weights(jnp.zeros(shape)).shape == shape


@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
def test_long_rows_with_padding_stay_exact(name, numpy_rng):
    scores, mask = numpy_rng.normal(size=(1, 512)) * 3, np.arange(512)[None] < 40
    weights = FUNCTIONS[name](jnp.asarray(scores, jnp.float32), jnp.asarray(mask))
    np.testing.assert_allclose(weights, reference(name, scores, mask), atol=2e-5)
    assert np.mean(np.asarray(weights)[mask] == 0) > 0.5


@every_function
def test_bfloat16_scores_give_float32_weights(name):
    weights = FUNCTIONS[name](jnp.ones((1, 3), jnp.bfloat16), jnp.ones((1, 3), bool))
    assert weights.dtype == jnp.float32
    np.testing.assert_allclose(weights, np.full((1, 3), 1 / 3), rtol=1e-6)


def test_gaussian_window_multiplies_without_normalising_again(numpy_rng):
    scores = numpy_rng.normal(size=(2, 1, 5))
    slots, center = np.asarray([[3, 4, 5, 6, 7]] * 2), np.asarray([5.2, 4.0])
    memory = Memory(None, None, None, {"slots": jnp.asarray(slots), "center": jnp.asarray(center)})
    mask = np.ones((2, 1, 5), bool)
    weights, _ = gaussian_window(NORMALIZERS["softmax"], 1.5)(
        {}, jnp.asarray(scores, jnp.float32), jnp.asarray(mask), jnp.zeros((2, 1, 1)), memory, {},
        positions=jnp.arange(1), call=Call(),
    )  # fmt: skip
    factor = np.exp(-((slots - center[:, None]) ** 2) / (2 * 1.5**2))[:, None]
    np.testing.assert_allclose(weights, reference("softmax", scores, mask) * factor, rtol=1e-5)
    assert np.all(np.asarray(weights).sum(-1) < 1)


@every_function
def test_second_derivatives_and_forward_mode(name):
    """Some weights are zero, and some slots may not be attended to."""
    scores = jnp.asarray([[0.3, -0.2, -4.0, 0.1], [1.0, 0.7, 0.2, -3.0], [9.0, 0.0, 0.0, 0.0]])
    mask = jnp.asarray([[1, 1, 1, 1], [1, 1, 0, 1], [0, 0, 0, 0]], bool)
    weights = FUNCTIONS[name](scores, mask)
    assert (weights[0] == 0).any() == (name != "softmax")
    factors = jnp.cos(jnp.arange(12.0)).reshape(3, 4)
    assert_derivatives_are_differences(
        lambda scores: (factors * FUNCTIONS[name](scores, mask) ** 2).sum(), scores
    )


@every_function
def test_hessians_are_finite(name):
    hessian = jax.hessian(lambda scores: FUNCTIONS[name](scores, jnp.ones(3, bool))[0])
    assert np.isfinite(hessian(jnp.asarray([2.0, 0.1, -40.0]))).all()
