"""Sums over alignments by hand: exact hard attention, monotonic attention, segments.

The numbers are two tokens and three slots, small enough to be worked out on paper.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.lattices import (
    INDEPENDENT,
    MONOTONIC,
    NEVER,
    SEGMENTS,
    Gates,
    condition,
    emission_gates,
    slot_posterior,
    sum_over_paths,
)

MASK, TOKENS = jnp.ones(3, bool), jnp.ones(2, bool)
EMISSIONS = np.log([[0.5, 0.2, 0.1], [0.3, 0.6, 0.7]])
GATES = np.array([[0.4, 0.5, 0.9], [0.3, 0.5, 0.8]])
ENDED = np.array([[0, 0, 0], [-np.inf, -np.inf, 0]])  # the second token ends the target


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def reached(transition, moves, emissions):
    """Returns p(y_1 .. y_t, a_t = i), row by row."""
    arguments = (transition, moves, jnp.asarray(emissions), MASK, TOKENS)
    paths = sum_over_paths(*arguments)
    before = np.concatenate([[0], np.cumsum(paths.log_probs)[:-1]])
    return np.exp(paths.prior + emissions + before[:, None]), slot_posterior(*arguments)


def gates(last_is_open):
    """Gates as given; the last is either open by its own probability, or always."""
    if last_is_open:
        return emission_gates(jnp.log(GATES / (1 - GATES)), MASK)
    return Gates(jnp.log(GATES), jnp.log(1 - GATES))


@pytest.mark.parametrize(
    ("last_is_open", "first", "second", "total"),
    [
        (False, [0.2, 0.06, 0.027], [0.018, 0.06, 0.07112], 0.07112),
        (True, [0.2, 0.06, 0.03], [0.018, 0.06, 0.091], 0.091),
    ],
)
def test_segments(last_is_open, first, second, total):
    """SSNT, with and without a last gate that is forced to one; -log .07112 is 2.64338669."""
    found, _ = reached(SEGMENTS, gates(last_is_open), EMISSIONS)
    np.testing.assert_allclose(found, [first, second], rtol=1e-7)
    ended, posterior = reached(SEGMENTS, gates(last_is_open), EMISSIONS + ENDED)
    np.testing.assert_allclose(ended[1], [0, 0, total], rtol=1e-7)
    if not last_is_open:
        np.testing.assert_allclose(-np.log(ended[1, 2]), 2.64338669, rtol=1e-8)
        expected = [[0.5511811, 0.23622047, 0.21259843], [0, 0, 1]]
        np.testing.assert_allclose(posterior, expected, rtol=1e-6)


def test_exact_hard_attention():
    """Attention .6 .3 .1 over the distributions of three slots, of which a token has .2 .8 .3."""
    weights = np.array([0.6, 0.3, 0.1])
    slots = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    prior = INDEPENDENT.move(jnp.log(weights), jnp.full(3, NEVER), MASK)
    mixture = [np.exp(condition(prior, jnp.log(slots[:, token]))[0]) for token in range(3)]
    np.testing.assert_allclose(mixture, [0.48, 0.39, 0.13], rtol=1e-12)

    def log_prob(scores):
        prior = INDEPENDENT.move(scores, jnp.full(3, NEVER), MASK)
        log_prob, posterior = condition(prior, jnp.log(slots[:, 1]))
        return log_prob, posterior

    (found, posterior), slope = jax.value_and_grad(log_prob, has_aux=True)(jnp.log(weights))
    np.testing.assert_allclose(-found, 0.94160854, rtol=1e-8)
    np.testing.assert_allclose(np.exp(posterior), [0.30769231, 0.61538462, 0.07692308], rtol=1e-7)
    # The gradient of the scores is the posterior without the prior.
    np.testing.assert_allclose(slope, [-0.29230769, 0.31538462, -0.02307692], rtol=1e-6)


def test_monotonic_attention_of_order_zero():
    scores = jnp.asarray([[1.0, 0.0, -1.0], [0.0, 1.0, 0.5]])
    found, _ = reached(MONOTONIC, scores, EMISSIONS)
    first = found[0] / np.exp(EMISSIONS[0])
    np.testing.assert_allclose(first, [0.66524096, 0.24472847, 0.09003057], rtol=1e-7)
    np.testing.assert_allclose(found[1], [0.01859253, 0.11935947, 0.09076318], rtol=1e-6)
    np.testing.assert_allclose(-np.log(found[1].sum()), 1.47527780, rtol=1e-8)
    free, _ = reached(INDEPENDENT, scores, EMISSIONS)
    np.testing.assert_allclose(-np.log(free[1].sum()), 1.49384407, rtol=1e-8)


def test_a_path_goes_on_from_where_it_is():
    scores, rows = jnp.asarray([0.0, 1.0, 0.5]), NEVER * (1 - jnp.eye(3))
    found = [np.exp(MONOTONIC.move(scores, row, MASK)) for row in rows]
    expected = [[0.18632372, 0.50648039, 0.30719589], [0, 0.62245933, 0.37754067], [0, 0, 1]]
    np.testing.assert_allclose(found, expected, rtol=1e-7)
