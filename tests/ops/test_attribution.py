"""Attributions of functions whose derivatives are known, by NumPy in float64."""

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops import (
    input_times_gradient,
    integrated_gradients,
    norms_of_sums,
    occlusion,
)

B, S, T, E = 2, 4, 3, 5
METHODS = (input_times_gradient, integrated_gradients, occlusion)


@pytest.fixture
def vectors(numpy_rng):
    return {"e": jnp.asarray(numpy_rng.normal(size=(B, S, E)))}


@pytest.fixture
def weights(numpy_rng):
    return numpy_rng.normal(size=(T, S, E))


def soft_maximum(weights):
    """f_t = log sum_s exp <w_ts, e_s>, which is not linear in any position."""

    def function(vectors):
        inner = jnp.einsum("tsd,bsd->bts", jnp.asarray(weights), vectors["e"])
        return jnp.log(jnp.exp(inner).sum(-1))

    return function


def as_numpy(vectors):
    return np.asarray(vectors["e"], np.float64)


@pytest.mark.parametrize("method", METHODS)
def test_of_a_linear_function_each_position_has_its_own_term(method, vectors, weights):
    found = method(lambda v: jnp.einsum("tsd,bsd->bt", jnp.asarray(weights), v["e"]), vectors)
    expected = np.einsum("tsd,bsd->bts", weights, as_numpy(vectors))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_input_times_gradient_is_the_derivative_by_hand(vectors, weights):
    inner = np.einsum("tsd,bsd->bts", weights, as_numpy(vectors))
    shares = np.exp(inner) / np.exp(inner).sum(-1, keepdims=True)
    found = input_times_gradient(soft_maximum(weights), vectors)
    np.testing.assert_allclose(found, shares * inner, rtol=1e-4, atol=1e-5)


def test_integrated_gradients_are_the_integral_and_are_complete(vectors, weights):
    inner = np.einsum("tsd,bsd->bts", weights, as_numpy(vectors))
    places = (np.arange(20_000) + 0.5) / 20_000  # the middle of small steps
    at = np.exp(places[:, None, None, None] * inner)
    expected = inner * (at / at.sum(-1, keepdims=True)).mean(0)
    function = soft_maximum(weights)
    found = integrated_gradients(function, vectors)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    gained = function(vectors) - function({"e": jnp.zeros((B, S, E))})
    np.testing.assert_allclose(found.sum(-1), gained, rtol=1e-4, atol=1e-4)
    few = integrated_gradients(function, vectors, num_points=1)
    assert np.abs(few.sum(-1) - gained).max() > 0.01


def test_occlusion_leaves_one_position_out_after_the_other(vectors, weights):
    inner = np.exp(np.einsum("tsd,bsd->bts", weights, as_numpy(vectors)))
    whole = inner.sum(-1, keepdims=True)
    expected = np.log(whole) - np.log(whole - inner + 1)  # of a zero vector, exp 0
    found = occlusion(soft_maximum(weights), vectors)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_what_has_several_names_counts_together(vectors, weights):
    function = soft_maximum(weights)
    parts = {"left": 0.3 * vectors["e"], "right": 0.7 * vectors["e"]}
    for method in METHODS:
        found = method(lambda v: function({"e": v["left"] + v["right"]}), parts)
        np.testing.assert_allclose(found, method(function, vectors), rtol=1e-4, atol=1e-5)


def test_norms_are_of_all_heads_together(numpy_rng):
    heads = 3
    weights, vectors = numpy_rng.random((B, T, heads, S)), numpy_rng.normal(size=(B, S, heads, E))
    found = norms_of_sums(jnp.asarray(weights), jnp.asarray(vectors))
    for b, t, s in np.ndindex(B, T, S):
        added = sum(weights[b, t, h, s] * vectors[b, s, h] for h in range(heads))
        np.testing.assert_allclose(found[b, t, s], np.linalg.norm(added), rtol=1e-4)
