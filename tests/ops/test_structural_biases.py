"""Positions and windows, worked out by hand."""

import jax.numpy as jnp
import numpy as np

from attention_jax.ops.structural_biases import neighbourhood, query_position, slot_positions


def test_position_features():
    """psi(j = 1, i, I = 4) = [log 2, log(1 + i), log 5]."""
    np.testing.assert_allclose(query_position(jnp.asarray([0, 1])), [0, 0.69314718], rtol=1e-6)
    mask = jnp.asarray([[True] * 4 + [False], [True] * 2 + [False] * 3])
    found = slot_positions(mask)
    assert found.shape == (2, 5, 2)
    np.testing.assert_allclose(
        found[0, :4, 0], [0, 0.69314718, 1.09861229, 1.38629436], rtol=1e-6
    )
    np.testing.assert_allclose(found[0, :, 1], 1.60943791, rtol=1e-6)
    np.testing.assert_allclose(found[1, :, 1], np.log(3), rtol=1e-6)


def test_positions_after_a_boundary():
    """Of "<s> a b </s>" mantis has log(1 + i) for i = 0 to 3, and log 5; here <s> has no slot."""
    found = slot_positions(jnp.asarray([True, True, True, False]), first=1)
    np.testing.assert_allclose(found[:3, 0], np.log([2, 3, 4]), rtol=1e-6)
    np.testing.assert_allclose(found[:3, 1], np.log(5), rtol=1e-6)


def test_windows_of_previous_and_summed_weights():
    previous = neighbourhood(jnp.asarray([0.7, 0.1, 0.1, 0.1]), 1)
    expected = [[0, 0.7, 0.1], [0.7, 0.1, 0.1], [0.1, 0.1, 0.1], [0.1, 0.1, 0]]
    np.testing.assert_allclose(previous, expected, rtol=1e-6)
    total = neighbourhood(jnp.asarray([1.4, 0.4, 0.6, 0.6]), 1)
    expected = [[0, 1.4, 0.4], [1.4, 0.4, 0.6], [0.4, 0.6, 0.6], [0.6, 0.6, 0]]
    np.testing.assert_allclose(total, expected, rtol=1e-6)


def test_windows_wider_than_the_source():
    found = neighbourhood(jnp.asarray([[1.0, 2.0]]), 3)
    expected = [[[0, 0, 0, 1, 2, 0, 0], [0, 0, 1, 2, 0, 0, 0]]]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(neighbourhood(jnp.asarray([1.0, 2.0]), 0), [[1], [2]])
