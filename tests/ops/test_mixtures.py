"""Mixtures of a softmax and of given probabilities, against NumPy, and where they are extreme."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.mixtures import (
    MixturePredictions,
    mixed_log_prob,
    pointer_sentinel,
    scattered,
)

B, T, N, V = 2, 3, 4, 6


def test_weights_are_summed_by_their_ids(numpy_rng):
    weights, ids = numpy_rng.random((B, T, N)), numpy_rng.integers(V, size=(B, 1, N))
    ids[0, 0, 1] = ids[0, 0, 0]
    expected = np.zeros((B, T, V))
    for b, t, n in np.ndindex(B, T, N):
        expected[b, t, ids[b, 0, n]] += weights[b, t, n]
    found = scattered(jnp.asarray(weights, jnp.float32), jnp.asarray(ids), V)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    nothing = scattered(jnp.zeros((0, T, N)), jnp.zeros((0, 1, N), jnp.int32), V)
    assert nothing.shape == (0, T, V)


def test_a_mixture_is_a_distribution_with_its_log_likelihoods(numpy_rng):
    logits, weights = 3 * numpy_rng.normal(size=(B, T, V)), numpy_rng.random((B, T, N)) / N
    ids = numpy_rng.integers(V, size=(B, 1, N))
    weights[0, 0] = 0.0
    kept = 1 - weights.sum(-1)
    probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    pointed = np.zeros((B, T, V))
    for b, t, n in np.ndindex(B, T, N):
        pointed[b, t, ids[b, 0, n]] += weights[b, t, n]
    expected = np.log(kept[..., None] * probs + pointed)
    arrays = (jnp.asarray(array, jnp.float32) for array in (logits, kept, weights))
    found = MixturePredictions(*arrays, jnp.asarray(ids))
    np.testing.assert_allclose(found.log_probs(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jnp.exp(found.log_probs()).sum(-1), 1.0, atol=1e-6)
    targets = numpy_rng.integers(V, size=(B, T))
    gold = np.take_along_axis(expected, targets[..., None], -1)[..., 0]
    np.testing.assert_allclose(found.log_prob(jnp.asarray(targets)), gold, rtol=1e-5, atol=1e-6)
    gold = np.take_along_axis(pointed, targets[..., None], -1)[..., 0]
    np.testing.assert_allclose(found.pointed_at(jnp.asarray(targets)), gold, rtol=1e-5, atol=1e-7)
    assert found.size == V


@pytest.mark.parametrize(
    ("log_prob", "kept", "pointed", "expected"),
    [
        (-200.0, 1.0, 0.0, -200.0),  # too small for its exponential
        (-200.0, 0.5, 0.25, np.log(0.25)),
        (-200.0, 0.0, 0.25, np.log(0.25)),
        (-1.0, 0.0, 0.0, -np.inf),
        (-np.inf, 1.0, 0.0, -np.inf),
        (0.0, 1.0, 0.0, 0.0),
    ],
)
def test_extremes_are_right_and_have_derivatives(log_prob, kept, pointed, expected):
    arguments = tuple(jnp.asarray(value, jnp.float32) for value in (log_prob, kept, pointed))
    np.testing.assert_allclose(mixed_log_prob(*arguments), expected, rtol=1e-6)
    if np.isfinite(expected):
        gradients = jax.grad(mixed_log_prob, argnums=(0, 1, 2))(*arguments)
        assert np.isfinite(gradients).all()


def test_a_pointer_and_its_sentinel_by_hand():
    """A window A, B, A with scores 1, 0, 2, a sentinel of 1, and p_vocab = (.2, .3, .5)."""
    scores, mask = jnp.asarray([1.0, 0.0, 2.0]), jnp.ones(3, bool)
    weights, kept = pointer_sentinel(scores, jnp.asarray(1.0), mask)
    np.testing.assert_allclose(weights, [0.19661193, 0.07232949, 0.53444665], rtol=1e-6)
    np.testing.assert_allclose(kept, 0.19661193, rtol=1e-6)
    logits = jnp.log(jnp.asarray([0.2, 0.3, 0.5]))
    found = MixturePredictions(logits, kept, weights, jnp.asarray([0, 1, 0]))
    expected = [0.77038097, 0.13131307, 0.09830597]
    np.testing.assert_allclose(jnp.exp(found.log_probs()), expected, rtol=1e-6)
    np.testing.assert_allclose(-found.log_prob(jnp.asarray(0)), 0.26087013, rtol=1e-6)
    share = found.kept + found.pointed_at(jnp.asarray(0))
    np.testing.assert_allclose(-jnp.log(share), 0.07507866, rtol=1e-6)


def test_a_pointer_with_nothing_to_point_at_leaves_all_to_the_vocabulary():
    def pointed(scores):
        weights, kept = pointer_sentinel(scores, jnp.asarray(-3.0), jnp.zeros(3, bool))
        return kept, weights

    (kept, weights), gradient = jax.value_and_grad(pointed, has_aux=True)(jnp.ones(3))
    assert kept == 1.0 and not weights.any() and not gradient.any()
