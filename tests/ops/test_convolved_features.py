"""Convolved features: hand-checked numbers, and against NumPy place by place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.convolved_features import (
    filter_features,
    gate_features,
    score_features,
    shifted_products,
)

FEATURES = jnp.asarray([[[1.0, 0.0], [2.0, 1.0], [0.0, 1.0], [1.0, 1.0]]])


def test_scores_by_hand():
    """Two channels, gated by (1, .5); the kernel is not flipped. Its last place sees a zero."""
    gate, kernel = jnp.asarray([[[1.0, 0.5]]]), jnp.asarray([[1.0, 0.0], [0.0, 2.0]])
    scores = filter_features(gate_features(FEATURES, gate), kernel)
    np.testing.assert_allclose(scores[0, 0, :3], [0.76980036, 1.15470054, 0.38490018], rtol=1e-6)
    weights = jax.nn.softmax(scores[0, 0, :3])
    np.testing.assert_allclose(weights, [0.31746171, 0.46649971, 0.21603859], rtol=1e-6)
    np.testing.assert_allclose(scores[0, 0, 3], 1 / np.sqrt(6 + 0.75), rtol=1e-6)


@pytest.mark.parametrize("width", [1, 2, 3, 7])
def test_features_and_scores_are_those_of_numpy(width, numpy_rng):
    features, gate = numpy_rng.normal(size=(2, 5, 3)), numpy_rng.normal(size=(2, 4, 3))
    kernel = numpy_rng.normal(size=(width, 3))
    gated = np.einsum("bsc,btc->btsc", features, gate)
    gated /= np.sqrt(np.square(gated).sum((-2, -1), keepdims=True))
    expected = np.zeros((2, 4, 5))
    for s, w in np.ndindex(5, width):
        place = s + w - (width - 1) // 2
        if 0 <= place < 5:
            expected[..., s] += gated[..., place, :] @ kernel[w]
    arrays = [jnp.asarray(array, jnp.float32) for array in (features, gate, kernel)]
    found = gate_features(*arrays[:2])
    np.testing.assert_allclose(found, gated, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(filter_features(found, arrays[2]), expected, rtol=1e-4, atol=1e-5)
    filtered = shifted_products(arrays[0], arrays[2])
    scores = score_features(arrays[0], filtered, arrays[1])
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)


def test_a_source_of_nothing_has_scores_and_derivatives():
    def total(gate):
        return score_features(jnp.zeros((1, 3, 2)), jnp.zeros((1, 3, 2)), gate).sum()

    value, gradient = jax.value_and_grad(total)(jnp.ones((1, 1, 2)))
    assert value == 0.0 and jnp.isfinite(gradient).all()
