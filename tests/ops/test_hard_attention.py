"""Sampled slots and what gradients are estimated with, against NumPy float64 and by enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.hard_attention import (
    draw_by_position,
    gumbel_softmax,
    log_prob_of_slot,
    most_probable_slot,
    sample_slot,
    straight_through,
)

WEIGHTS = jnp.asarray([[0.25, 0.5, 0.25, 0.0], [0.0, 0.1, 0.0, 0.9], [0.0, 0.0, 0.0, 0.0]])


def weights_of(scores):
    return jax.nn.softmax(scores, axis=-1)


@pytest.mark.parametrize(
    ("uniform", "slots"),
    [(0.0, [0, 1]), (0.2499, [0, 3]), (0.25, [1, 3]), (0.7499, [1, 3]), (0.75, [2, 3]),
     (1.0 - 2.0**-23, [2, 3])],
)  # fmt: skip
def test_a_slot_is_where_the_cumulative_distribution_passes_the_number(uniform, slots):
    found = np.asarray(sample_slot(WEIGHTS, jnp.full(3, uniform)))
    np.testing.assert_array_equal(found[:2], np.eye(4)[slots])
    np.testing.assert_array_equal(found[2], 0)  # nothing can be read


def test_samples_follow_their_weights_and_never_fall_on_padding():
    """Over an even grid of numbers, each slot is sampled as often as its weight says."""
    rng, number = np.random.default_rng(0), 20_000
    weights = rng.dirichlet(np.ones(7), size=5).astype(np.float32)
    weights = np.where(np.arange(9) < 7, np.pad(weights, ((0, 0), (0, 2))), 0)
    weights[1, ::2] = 0  # as sparse normalizers have them, which need not sum to one
    grid = (jnp.arange(number) + 0.5) / number
    every = jnp.broadcast_to(jnp.asarray(weights), (number, *weights.shape))
    found = np.asarray(sample_slot(every, jnp.broadcast_to(grid[:, None], (number, 5))))
    assert np.all(found.sum(-1) == 1) and np.all(found[:, weights == 0] == 0)
    np.testing.assert_allclose(found.mean(0), weights / weights.sum(-1, keepdims=True), atol=2e-4)


def test_what_is_sampled_does_not_depend_on_padding():
    rng = np.random.default_rng(1)
    weights, uniform = rng.dirichlet(np.ones(6), size=500), jnp.asarray(rng.random(500), float)
    weights = jnp.asarray(weights, float)
    padded = jnp.pad(weights, ((0, 0), (0, 58)))
    found = sample_slot(padded, uniform)
    np.testing.assert_array_equal(found[:, :6], sample_slot(weights, uniform))
    assert not found[:, 6:].any()


def test_most_probable_slot_is_the_first_of_equal_ones():
    found = most_probable_slot(jnp.asarray([[0.2, 0.4, 0.4], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(found, [[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_log_probabilities_have_the_derivative_of_the_score_function():
    """d log alpha_s / d scores = one-hot(s) - alpha; a row that reads nothing has none."""
    scores, read = jnp.asarray([0.3, -1.2, 2.0]), jnp.eye(3)
    alpha = np.exp(np.asarray(scores, np.float64))
    alpha /= alpha.sum()
    np.testing.assert_allclose(
        log_prob_of_slot(jnp.broadcast_to(weights_of(scores), (3, 3)), read), np.log(alpha),
        rtol=1e-6,
    )  # fmt: skip
    gradients = jax.jacobian(
        lambda scores: log_prob_of_slot(jnp.broadcast_to(weights_of(scores), (3, 3)), read)
    )(scores)
    np.testing.assert_allclose(gradients, np.eye(3) - alpha, rtol=1e-5, atol=1e-6)
    value, gradient = jax.value_and_grad(log_prob_of_slot)(jnp.zeros(3), jnp.zeros(3))
    assert value == 0 and not gradient.any()


def test_straight_through_has_the_value_of_the_one_and_the_gradient_of_the_other():
    upstream, scores = jnp.asarray([0.7, -2.0, 1.5]), jnp.asarray([0.3, -1.2, 2.0])
    sample = sample_slot(weights_of(scores), jnp.asarray(0.5))

    def read(scores):
        return straight_through(sample, weights_of(scores))

    np.testing.assert_array_equal(read(scores), sample)  # to the bit
    gradient = jax.grad(lambda scores: upstream @ read(scores))(scores)
    expected = jax.grad(lambda scores: upstream @ weights_of(scores))(scores)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)
    assert np.abs(expected).max() > 0.05


def test_gumbel_softmax_is_the_softmax_of_perturbed_logarithms():
    rng = np.random.default_rng(2)
    weights, noise = rng.dirichlet(np.ones(5), size=4), rng.gumbel(size=(4, 5))
    logits = (np.log(weights) + noise) / 0.7
    expected = np.exp(logits - logits.max(-1, keepdims=True))
    expected /= expected.sum(-1, keepdims=True)
    found = gumbel_softmax(jnp.asarray(weights, float), jnp.asarray(noise, float), 0.7)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_gumbel_softmax_goes_to_a_sample_as_the_temperature_goes_to_zero():
    noise = jnp.asarray(np.random.default_rng(3).gumbel(size=(1000, 3, 4)), jnp.float32)
    weights = jnp.broadcast_to(WEIGHTS, noise.shape)
    perturbed = jnp.where(WEIGHTS > 0, jnp.log(jnp.maximum(WEIGHTS, 1e-30)) + noise, -jnp.inf)
    largest = np.eye(4)[np.argmax(perturbed, -1)] * np.asarray(WEIGHTS.sum(-1) > 0)[:, None]
    distances = [
        float(np.abs(gumbel_softmax(weights, noise, t) - largest).mean()) for t in (1.0, 0.3, 1e-4)
    ]
    assert distances[0] > 2 * distances[1] > 4 * distances[2] and distances[2] < 1e-3
    found = np.asarray(most_probable_slot(gumbel_softmax(weights, noise, 1.0)))
    np.testing.assert_array_equal(found, largest)
    np.testing.assert_allclose(found.mean(0)[:2], WEIGHTS[:2], atol=0.06)  # 4 deviations of 1000
    assert np.all(found[:, np.asarray(WEIGHTS) == 0] == 0)


@pytest.mark.parametrize("temperature", [1.0, 1e-3])
def test_gradients_are_finite_where_there_is_no_weight(temperature):
    noise = jnp.asarray([[0.1, -0.3, 2.0, 0.5]] * 3)
    uniform = jnp.asarray([0.1, 0.5, 0.9])

    def total(weights):
        relaxed = gumbel_softmax(weights, noise, temperature)
        sample = sample_slot(weights, uniform)
        return (jnp.cos(jnp.arange(12.0)).reshape(3, 4) * relaxed).sum() + log_prob_of_slot(
            weights, sample
        ).sum()

    assert np.isfinite(jax.grad(total)(WEIGHTS)).all()


def test_a_position_draws_the_same_alone_as_with_others(rng):
    def draw(key):
        return jax.random.uniform(key, (3, 2))

    together = draw_by_position(draw, rng, jnp.arange(4), -2)
    assert together.shape == (3, 4, 2)
    for position in range(4):
        alone = draw_by_position(draw, rng, jnp.asarray([position]), -2)
        np.testing.assert_array_equal(alone[:, 0], together[:, position])
    assert len(np.unique(together)) == together.size
