"""Greedy search, a rollout of the most probable tokens, against a plain loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.search import SearchConfig
from tests.search.toy_model import EOS, UNK, ToyModel, jitted, real


def test_greedy_takes_the_most_probable_token_at_each_position():
    model = ToyModel(4, vocabulary=9, batch=4)
    config = SearchConfig(method="greedy", max_length_factor=1, max_length_constant=4)
    sources = [2, 4, 6, 8]
    found = jitted(model.step, model.start(), config, jnp.array(sources), 10)
    for row, source in enumerate(sources):
        tokens = []
        while EOS not in tokens:
            if len(tokens) + 1 == min(source + 4, 10):
                tokens.append(EOS)
            else:
                log_probs = model.distributions(row, [*tokens, EOS])[0][-1]
                log_probs[:2] = -np.inf
                tokens.append(int(np.argmax(log_probs)))
        assert real(found, row, 0) == tokens
        log_prob, weights = model.rescore(row, tokens)
        np.testing.assert_allclose(found.log_probs[row, 0], log_prob, rtol=1e-4)
        np.testing.assert_allclose(found.scores[row, 0], log_prob / len(tokens), rtol=1e-4)
        np.testing.assert_allclose(found.weights[row, 0, : len(tokens)], weights, atol=1e-5)
        assert not np.any(found.weights[row, 0, len(tokens) :])


def test_greedy_respects_what_is_forbidden():
    logits = jnp.array([9.0, 9.0, 5.0, 4.0, 1.0])

    def step(state, tokens):
        return SoftmaxPredictions(jnp.broadcast_to(logits, (*tokens.shape, 5))), state, state

    def tokens(**settings):
        config = SearchConfig(
            method="greedy", max_length_factor=1, max_length_constant=0, **settings
        )
        return real(jitted(step, jnp.zeros((1, 1, 1)), config, jnp.array([4]), 9), 0, 0)

    assert tokens() == [EOS]
    assert tokens(min_length_ratio=0.5) == [UNK, UNK, EOS]
    assert tokens(min_length_ratio=0.5, forbid_unknown=True) == [4, 4, EOS]
    assert tokens(min_length_ratio=9.0) == [UNK, UNK, UNK, EOS]
    assert tokens(min_length_constant=2) == [UNK, UNK, EOS]


METHODS = {
    "greedy": {"method": "greedy"},
    "beam": {"beam_size": 4, "num_hypotheses": 4},
    "sample": {"method": "sample", "num_hypotheses": 4},
}


@pytest.mark.parametrize("method", METHODS)
def test_outputs_begin_with_the_first_token_which_costs_nothing(method):
    model = ToyModel(4, vocabulary=9, batch=3)
    config = SearchConfig(
        first_token=7, length_normalization="none", max_length_factor=0, max_length_constant=5,
        **METHODS[method],
    )  # fmt: skip
    found = jitted(model.step, model.start(), config, jnp.full(3, 4), 5, jax.random.key(1))
    for row, rank in np.ndindex(*found.lengths.shape):
        tokens = real(found, row, rank)
        assert tokens[0] == 7
        log_probs = model.distributions(row, tokens)[0][np.arange(len(tokens)), tokens]
        np.testing.assert_allclose(found.log_probs[row, rank], log_probs[1:].sum(), rtol=1e-4)
    if method == "greedy":  # the rest is what is most probable behind it
        best = model.distributions(0, [7, EOS])[0][-1]
        assert real(found, 0, 0)[1] == EOS + np.argmax(best[EOS:])
    limits = {"max_length_factor": 0, "max_length_constant": 1}
    short = SearchConfig(first_token=7, **limits, **METHODS[method])
    found = jitted(model.step, model.start(), short, jnp.full(3, 4), 1, jax.random.key(1))
    assert real(found, 0, 0) == [EOS]  # there is no room for anything else
