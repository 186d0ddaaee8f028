"""Masks and what depends on the ends of padded sequences."""

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.ops.masks import masked_mean, shift_right, zero_padding


def test_zero_padding_replaces_nan():
    values = jnp.asarray([[[1.0, 2.0], [jnp.nan, jnp.inf]]])
    cleaned = zero_padding(values, jnp.asarray([[True, False]]))
    np.testing.assert_array_equal(cleaned, [[[1.0, 2.0], [0.0, 0.0]]])


def test_masked_mean_ignores_padding_and_survives_empty_rows():
    values = jnp.asarray([[[1.0], [3.0], [jnp.nan]], [[jnp.nan], [7.0], [7.0]]])
    mask = jnp.asarray([[True, True, False], [False, False, False]])
    np.testing.assert_array_equal(masked_mean(values, mask), [[2.0], [0.0]])
    gradient = jax.grad(lambda values: masked_mean(values, mask).sum())(values)
    np.testing.assert_array_equal(gradient[..., 0], [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])


def test_shift_right_returns_what_precedes():
    np.testing.assert_array_equal(shift_right(jnp.asarray([[5, 6, 7]]), 1), [[1, 5, 6]])
