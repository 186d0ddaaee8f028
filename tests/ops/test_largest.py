"""The largest entries, against `lax.top_k`, and normalizers, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from attention_jax.ops.largest import largest, log_normalizer


@pytest.mark.parametrize("length", [10, 1024, 2048, 2050, 5000])
@pytest.mark.parametrize("number", [1, 3, 8])
@pytest.mark.parametrize("kinds", [None, 40])
def test_equals_top_k(length, number, kinds):
    """Also with so many ties that most of the entries that are found have equals."""
    values = np.random.default_rng(length + number).normal(size=(2, 3, length)).astype(np.float32)
    if kinds:
        values = np.round(values * kinds / 4)
    values[0, 0, : length // 2] = -np.inf
    found = jax.jit(largest, static_argnums=1)(jnp.asarray(values), number)
    for ours, expected in zip(found, lax.top_k(values, number), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_rows_of_nothing_are_found_in_order():
    entries, places = largest(jnp.full((1, 3000), -jnp.inf), 4)
    assert np.all(np.isneginf(entries)) and places.tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("length", [10, 1024, 1050, 5000])
@pytest.mark.parametrize("offset", [0.0, 500.0, -500.0])
def test_normalizer_is_the_log_of_the_sum(length, offset):
    values = np.random.default_rng(length).normal(size=(2, 3, length)) * 3 + offset
    values = values.astype(np.float32)
    values[0, 0, : length // 2] = -np.inf
    exact = values.astype(np.float64)
    expected = offset + np.log(np.sum(np.exp(exact - offset), axis=-1))
    found = jax.jit(log_normalizer)(jnp.asarray(values))
    np.testing.assert_allclose(found, expected, rtol=3e-7, atol=3e-6)
