"""Normalisation over the depth, against NumPy and by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.normalization import layer_norm, rms_norm, unit_vector


def test_layer_norm_is_that_of_the_formula(numpy_rng):
    x, scale, bias = (numpy_rng.normal(size=shape) for shape in ((2, 3, 5), 5, 5))
    centred = x - x.mean(-1, keepdims=True)
    expected = scale * centred / np.sqrt(x.var(-1, keepdims=True) + 1e-6) + bias
    found = layer_norm(*(jnp.asarray(a, jnp.float32) for a in (x, scale, bias)))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_layer_norm_by_hand():
    found = layer_norm(jnp.array([1.0, 2.0, 3.0, 4.0]), jnp.ones(4), jnp.zeros(4))
    expected = [-1.34164025, -0.44721342, 0.44721342, 1.34164025]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_rms_norm_is_that_of_the_formula(numpy_rng):
    x, scale = numpy_rng.normal(size=(2, 3, 5)), numpy_rng.normal(size=5)
    expected = scale * x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    found = rms_norm(jnp.asarray(x, jnp.float32), jnp.asarray(scale, jnp.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_types_are_kept_and_zeros_stay_finite():
    zeros = jnp.zeros((2, 4), jnp.bfloat16)
    for found in (layer_norm(zeros, jnp.ones(4), jnp.zeros(4)), rms_norm(zeros, jnp.ones(4))):
        assert found.dtype == jnp.bfloat16 and jnp.all(found == 0)


@pytest.mark.parametrize("size", [1.0, 1e-11, 1e-13, 1e-19, 1e-30, 1e13, 1e30])
def test_a_unit_vector_is_that_whatever_its_size(size):
    vector = jnp.float32(size) * jnp.array([3.0, -4.0])
    np.testing.assert_allclose(unit_vector(vector), [0.6, -0.8], rtol=1e-6)
    # d (x / |x|) . (1, 1): (1 - u (u . 1)) / |x|
    gradient = jax.grad(lambda vector: unit_vector(vector).sum())(vector)
    expected = (1.0 - np.array([0.6, -0.8]) * -0.2) / 5.0 / size
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)


def test_a_vector_of_zeros_stays_and_has_finite_gradients():
    zeros = jnp.zeros((2, 3))
    gradient = jax.grad(lambda vectors: unit_vector(vectors).sum())(zeros)
    assert jnp.all(unit_vector(zeros) == 0.0) and jnp.all(jnp.isfinite(gradient))
