"""Coverage penalties: their equations, and searches that are decided by them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.search import SearchConfig
from attention_jax.search.coverage import coverage_penalty, word_columns
from tests.search import reference
from tests.search.toy_model import ToyModel, jitted, real


def test_word_columns_leave_out_padding_and_the_end():
    found = word_columns(jnp.array([4, 1, 0, 5]), 4)
    expected = [[1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]
    np.testing.assert_array_equal(found[:, 0], np.array(expected, bool))


@pytest.mark.parametrize("kind", ["gnmt", "summary"])
def test_penalty_equals_its_equation(kind, numpy_rng):
    weights = numpy_rng.dirichlet(np.ones(6), size=(3, 2, 5))
    lengths = [7, 4, 1]
    config = SearchConfig(coverage_penalty=kind, coverage_beta=0.3)
    found = coverage_penalty(
        config, jnp.asarray(weights.sum(-2), jnp.float32), word_columns(jnp.array(lengths), 6)
    )
    for row, length in enumerate(lengths):
        for rank in range(2):
            expected = reference.coverage_penalty(kind, 0.3, weights[row, rank], length - 1)
            np.testing.assert_allclose(found[row, rank], expected, rtol=1e-5)
            assert expected < 0 or length == 1


@pytest.mark.parametrize("kind", ["gnmt", "summary"])
def test_penalty_is_finite_without_attention_and_zero_for_attention_of_one(kind):
    config = SearchConfig(coverage_penalty=kind, coverage_beta=1.0)
    words = jnp.array([True, True, False])
    forgotten = coverage_penalty(config, jnp.array([1.0, 0.0, 9.0]), words)
    np.testing.assert_allclose(forgotten, np.log(1e-10) if kind == "gnmt" else 0.0, rtol=1e-6)
    assert coverage_penalty(config, jnp.array([1.0, 1.0, 9.0]), words) == 0
    twice = coverage_penalty(config, jnp.array([1.0, 2.5, 9.0]), words)
    np.testing.assert_allclose(twice, 0.0 if kind == "gnmt" else -1.5)


@pytest.mark.parametrize(("kind", "stepwise"), [("gnmt", False), ("summary", True)])
def test_beam_of_full_width_equals_exhaustive_search(kind, stepwise):
    model = ToyModel(0, batch=8)
    config = SearchConfig(
        beam_size=45, num_hypotheses=6, max_length_factor=0, max_length_constant=4,
        length_normalization="gnmt", length_alpha=0.6,
        coverage_penalty=kind, coverage_beta=1.5, coverage_stepwise=stepwise,
    )  # fmt: skip
    found = jitted(model.step, model.start(), config, jnp.full(8, 3), 4)
    plain = dataclasses.replace(config, coverage_penalty="none", coverage_stepwise=False)
    decided = 0
    for row in range(8):
        scored = [
            (reference.score(model, row, tokens, config, 3), tokens)
            for tokens in model.all_outputs(4)
        ]
        scored.sort(reverse=True)
        for rank, (score, tokens) in enumerate(scored[:6]):
            assert real(found, row, rank) == tokens
            np.testing.assert_allclose(found.scores[row, rank], score, rtol=1e-4)
            log_prob, _ = model.rescore(row, tokens)
            np.testing.assert_allclose(found.log_probs[row, rank], log_prob, rtol=1e-4)
        decided += scored != sorted(
            scored, key=lambda one: -reference.score(model, row, one[1], plain, 3)
        )
    assert decided


@pytest.mark.parametrize(
    ("kind", "stepwise", "size"),
    [
        ("none", False, 2),
        ("gnmt", False, 0),
        ("gnmt", True, 2),
        ("summary", False, 2),
        ("summary", True, 0),
    ],
)
def test_narrow_beam_equals_its_definition(kind, stepwise, size):
    """With fewer beams than beginnings, so that pruning, stopping and following all matter."""
    model = ToyModel(3, vocabulary=8, source=4, batch=6, scale=1.0)
    config = SearchConfig(
        beam_size=3, num_hypotheses=3, max_length_factor=0, max_length_constant=7,
        length_normalization="length", coverage_penalty=kind, coverage_beta=0.7,
        coverage_stepwise=stepwise, no_repeat_ngram_size=size,
    )  # fmt: skip
    found = jitted(model.step, model.start(), config, jnp.full(6, 4), 7)
    for row in range(6):
        expected = reference.beam_search(model, row, config, 4, 7)
        assert [real(found, row, rank) for rank in range(3)] == [tokens for _, tokens in expected]
        scores = [score for score, _ in expected]
        np.testing.assert_allclose(found.scores[row], scores, rtol=1e-4)


def test_samples_are_ordered_by_their_penalised_scores():
    model = ToyModel(2, vocabulary=8, batch=2)
    config = SearchConfig(
        method="sample", num_hypotheses=6, max_length_constant=3, length_normalization="none",
        coverage_penalty="summary", coverage_beta=5.0,
    )  # fmt: skip
    found = jitted(model.step, model.start(), config, jnp.array([4, 0]), 9, jax.random.key(1))
    assert np.all(np.diff(found.scores[0]) <= 0) and np.any(np.diff(found.log_probs[0]) > 0)
    for rank in range(6):
        expected = reference.score(model, 0, real(found, 0, rank), config, 4)
        np.testing.assert_allclose(found.scores[0, rank], expected, rtol=1e-4)
    assert np.all(np.isneginf(found.scores[1]))


def test_a_search_stops_when_no_penalty_could_be_paid_back():
    """EOS at once is beaten by what covers the source later, however bad that looks until then."""
    # Token 4 attends word 0, token 5 word 1; ending at once leaves both without attention.
    table = jnp.log(jnp.array([1e-9, 1e-9, 0.9, 1e-9, 0.05, 0.05]))

    def step(state, tokens):
        weights = jax.nn.one_hot(tokens - 4, 3)
        return SoftmaxPredictions(jnp.broadcast_to(table, (*tokens.shape, 6))), weights, state

    def best(**settings):
        config = SearchConfig(
            beam_size=8, length_normalization="none", max_length_constant=4, max_length_factor=0,
            forbid_unknown=True, **settings,
        )  # fmt: skip
        found = jitted(step, jnp.zeros((1, 1, 1)), config, jnp.array([3]), 4)
        return sorted(real(found, 0, 0))

    assert best() == [2]
    assert best(coverage_penalty="gnmt", coverage_beta=1.0) == [2, 4, 5]


def carried(config):
    """Counts the arrays that the loop of a search carries from position to position."""
    model = ToyModel(0)

    def searched(state, lengths):
        return jitted.__wrapped__(model.step, state, config, lengths, 6, jax.random.key(0))

    (loop,) = [
        equation
        for equation in jax.make_jaxpr(searched)(model.start(), jnp.array([3, 4])).eqns
        if equation.primitive.name == "while"
    ]
    return len(loop.outvars)


def test_only_a_search_that_needs_it_carries_more():
    # position; 2 + 3 of the live; 5 of the finished; 3 of the history
    assert carried(SearchConfig()) == 14
    assert carried(SearchConfig(coverage_penalty="gnmt")) == 15
    assert carried(SearchConfig(no_repeat_ngram_size=2)) == 15
    assert carried(SearchConfig(coverage_penalty="summary", no_repeat_ngram_size=2)) == 16
    assert carried(SearchConfig(method="greedy", no_repeat_ngram_size=2)) == carried(
        SearchConfig(method="greedy")
    )
