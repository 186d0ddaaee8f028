"""Sampling against the distributions that it is meant to draw from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.search import SearchConfig, search
from attention_jax.search.sample import keep_nucleus, keep_top_k
from tests.search.toy_model import EOS, PAD, ToyModel, jitted, real

PROBABILITIES = np.array([0.05, 0.05, 0.1, 0.1, 0.4, 0.2, 0.1])


def constant_step(state, tokens):
    logits = jnp.log(jnp.asarray(PROBABILITIES, jnp.float32))
    predicted = jnp.broadcast_to(logits, (*tokens.shape, len(PROBABILITIES)))
    return SoftmaxPredictions(predicted), state, state


def sampled(max_length=1, draws=4000, seed=0, **settings):
    config = SearchConfig(
        method="sample", num_hypotheses=draws, max_length_factor=0,
        max_length_constant=max_length, **settings,
    )  # fmt: skip
    state, lengths = jnp.zeros((1, 1, 1)), jnp.array([4])
    return jitted(constant_step, state, config, lengths, max_length, jax.random.key(seed))


@pytest.mark.parametrize(
    ("settings", "weights"),
    [
        ({}, [0, 0, 0.1, 0.1, 0.4, 0.2, 0.1]),
        ({"forbid_unknown": True}, [0, 0, 0.1, 0, 0.4, 0.2, 0.1]),
        ({"temperature": 0.5}, [0, 0, 0.01, 0.01, 0.16, 0.04, 0.01]),
        ({"temperature": 1e-6}, [0, 0, 0, 0, 0.4, 0, 0]),
        ({"temperature": 1e6}, [0, 0, 1, 1, 1, 1, 1]),
        ({"top_k": 2}, [0, 0, 0, 0, 0.4, 0.2, 0]),
        ({"top_p": 0.4}, [0, 0, 0, 0, 0.4, 0, 0]),
        ({"top_p": 0.5}, [0, 0, 0, 0, 0.4, 0.2, 0]),
        ({"min_length_ratio": 0.5}, [0, 0, 0, 0.1, 0.4, 0.2, 0.1]),
    ],
)
def test_sample_draws_from_the_configured_distribution(settings, weights):
    found = sampled(max_length=4, **settings)
    first = np.bincount(np.asarray(found.tokens)[0, :, 0], minlength=7) / 4000
    expected = np.array(weights) / np.sum(weights)
    np.testing.assert_allclose(first, expected, atol=4 * 0.5 / np.sqrt(4000))
    assert not np.any(first[expected == 0])


def test_sample_repeats_with_its_key_and_differs_between_positions():
    one, same, other = (np.asarray(sampled(8, 50, seed).tokens) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert np.any(one != other)
    runs = [row[: list(row).index(EOS)] for row in one[0]]
    assert any(len(set(row)) > 1 for row in runs)


def test_sample_reports_the_models_own_log_probabilities():
    model = ToyModel(2, vocabulary=8, batch=3)
    config = SearchConfig(
        method="sample", num_hypotheses=4, temperature=3.0, top_k=4, max_length_constant=4
    )
    rng = jax.random.key(5)
    found = jitted(model.step, model.start(), config, jnp.array([2, 3, 0]), 10, rng)
    assert np.all(np.diff(found.scores[:2]) <= 0)
    for row in range(2):
        for rank in range(4):
            tokens = real(found, row, rank)
            log_prob, weights = model.rescore(row, tokens)
            assert tokens[-1] == EOS and PAD not in tokens
            np.testing.assert_allclose(found.log_probs[row, rank], log_prob, rtol=1e-4)
            np.testing.assert_allclose(found.scores[row, rank], log_prob / len(tokens), rtol=1e-4)
            np.testing.assert_allclose(
                found.weights[row, rank, : len(tokens)], weights, rtol=1e-4, atol=1e-6
            )
    assert np.all(found.lengths[2] == 0) and np.all(np.isneginf(found.scores[2]))


def test_sample_needs_a_key():
    model = ToyModel()
    with pytest.raises(ValueError, match="rng"):
        search(model.step, model.start(), SearchConfig(method="sample"), jnp.array([3, 3]), 5)


def test_keep_top_k_keeps_the_largest_and_ties():
    logits = jnp.array([1.0, 3.0, 2.0, 2.0, -jnp.inf])
    kept = keep_top_k(logits, 2)
    np.testing.assert_array_equal(kept, [-np.inf, 3.0, 2.0, 2.0, -np.inf])
    np.testing.assert_array_equal(keep_top_k(logits, 9), logits)


def test_keep_nucleus_keeps_the_fewest_that_reach_p():
    logits = jnp.log(jnp.array([[0.1, 0.5, 0.15, 0.25], [0.7, 0.1, 0.1, 0.1]]))
    kept = np.isfinite(keep_nucleus(logits, 0.74))
    np.testing.assert_array_equal(kept, [[0, 1, 0, 1], [1, 1, 1, 1]])
    assert np.isfinite(keep_nucleus(logits, 1e-6)).sum() == 2
    halves = jnp.log(jnp.array([[0.5, 0.25, 0.25]]))  # the first alone reaches a half
    np.testing.assert_array_equal(np.isfinite(keep_nucleus(halves, 0.5)), [[1, 0, 0]])
