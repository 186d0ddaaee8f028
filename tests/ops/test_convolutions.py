"""Convolutions over padded sequences, in NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.convolutions import average_window, convolve, gated_linear_unit

B, S, D, F = 2, 5, 3, 4
LENGTHS = (5, 2)


@pytest.fixture
def padded(numpy_rng):
    values = numpy_rng.normal(size=(B, S, D))
    mask = np.arange(S) < np.asarray(LENGTHS)[:, None]
    return values, mask, jnp.asarray(np.where(mask[..., None], values, np.nan), jnp.float32)


@pytest.mark.parametrize("width", [1, 3, 7])
def test_convolve_sums_over_a_window_of_real_tokens(padded, width, numpy_rng):
    values, mask, with_nan = padded
    kernel, bias = numpy_rng.normal(size=(width, D, F)), numpy_rng.normal(size=F)
    flat = jnp.asarray(kernel.reshape(-1, F), jnp.float32)
    found = convolve(with_nan, flat, jnp.asarray(bias, jnp.float32), jnp.asarray(mask))
    for row, length in enumerate(LENGTHS):
        for place in range(S):
            expected = bias.copy()
            for offset in range(width):
                other = place + offset - width // 2
                if 0 <= other < length:
                    expected += values[row, other] @ kernel[offset]
            np.testing.assert_allclose(found[row, place], expected, rtol=1e-4, atol=1e-5)


def test_average_window_counts_zeros_outside(padded):
    values, mask, with_nan = padded
    found = average_window(with_nan, jnp.asarray(mask), 3)
    first = (values[1, 0] + values[1, 1]) / 3
    np.testing.assert_allclose(found[1, :2], [first, first], rtol=1e-5)
    np.testing.assert_allclose(found[0, 2], values[0, 1:4].mean(0), rtol=1e-5)


def test_gated_linear_unit_gates_the_first_half():
    found = gated_linear_unit(jnp.asarray([1.0, -2.0, 0.0, 100.0]))
    np.testing.assert_allclose(found, [0.5, -2.0], rtol=1e-6)
