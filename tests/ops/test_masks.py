"""Masks and what depends on the ends of padded sequences."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attention_jax.ops.masks import lengths_to_mask, masked_mean, shift_right, zero_padding


@given(st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_lengths_to_mask_marks_the_first_positions(lengths):
    mask = lengths_to_mask(jnp.asarray(lengths), 5)
    expected = [[position < length for position in range(5)] for length in lengths]
    np.testing.assert_array_equal(mask, expected)


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
