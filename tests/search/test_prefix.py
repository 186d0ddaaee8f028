"""Outputs begin with the prefixes that are forced, and go on as a search that began there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.search import SearchConfig
from attention_jax.search.vocabulary import next_scores
from attention_jax.types import SpecialIds
from tests.search import reference
from tests.search.test_stages import LONGEST, CachingToy, stage_of
from tests.search.toy_model import EOS, PAD, ToyModel, jitted, real

# The second row is free, the last one is filler.
PREFIXES = [[5, 4, 4, 5], [], [7], [6, 6]]
LENGTHS = [3, 4, 5, 0]
METHODS = {
    "greedy": {"method": "greedy"},
    "beam": {"beam_size": 3, "num_hypotheses": 3},
    "sample": {"method": "sample", "num_hypotheses": 3, "top_k": 3, "temperature": 2.0},
}


def padded(prefixes, size=8):
    array = np.zeros((len(prefixes), size), np.int32)
    for row, prefix in enumerate(prefixes):
        array[row, : len(prefix)] = prefix
    return jnp.asarray(array)


def found(model, config, lengths=LENGTHS, prefix=None, longest=12):
    lengths = jnp.asarray(lengths)
    return jitted(model.step, model.start(), config, lengths, longest, jax.random.key(2), prefix)


@pytest.mark.parametrize("method", METHODS)
def test_outputs_begin_with_their_prefixes_and_are_as_likely_as_the_model_says(method):
    model = ToyModel(2, vocabulary=9, batch=4)
    config = SearchConfig(forbid_unknown=True, max_length_constant=2, **METHODS[method])
    free, forced = found(model, config), found(model, config, prefix=padded(PREFIXES))
    for row, prefix in enumerate(PREFIXES[:3]):
        for rank in range(forced.lengths.shape[1]):
            tokens = real(forced, row, rank)
            assert tokens[: len(prefix)] == prefix and tokens[-1] == EOS
            log_prob, weights = model.rescore(row, tokens)
            np.testing.assert_allclose(forced.log_probs[row, rank], log_prob, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(
                forced.scores[row, rank], log_prob / len(tokens), rtol=1e-5, atol=1e-5
            )
            np.testing.assert_allclose(forced.weights[row, rank, : len(tokens)], weights, atol=1e-5)
    for one, other in zip(jax.tree.leaves(free), jax.tree.leaves(forced), strict=True):
        np.testing.assert_array_equal(one[1], other[1])
        np.testing.assert_array_equal(one[3], other[3])


BEAMS = {
    "plain": {},
    "coverage": {"coverage_penalty": "gnmt", "coverage_beta": 0.5},
    "stepwise": {"coverage_penalty": "summary", "coverage_stepwise": True},
    "no_repeats": {"no_repeat_ngram_size": 2},
}


@pytest.mark.parametrize("fields", BEAMS.values(), ids=BEAMS)
def test_a_beam_is_that_of_the_definition_which_begins_with_the_prefix(fields):
    model = ToyModel(5, vocabulary=8, batch=3)
    config = SearchConfig(
        beam_size=3, num_hypotheses=3, max_length_factor=0, max_length_constant=9, **fields
    )
    forced = found(model, config, [4] * 3, padded(PREFIXES[:3]), 9)
    for row, prefix in enumerate(PREFIXES[:3]):
        expected = reference.beam_search(model, row, config, 4, 9, prefix)
        assert len(expected) == 3
        for rank, (score, tokens) in enumerate(expected):
            assert real(forced, row, rank) == tokens
            np.testing.assert_allclose(forced.scores[row, rank], score, rtol=1e-4)


def test_a_beam_of_full_width_finds_every_output_that_begins_with_the_prefix():
    model = ToyModel(0, batch=2)
    config = SearchConfig(
        beam_size=16, num_hypotheses=16, max_length_factor=0, max_length_constant=5,
        length_normalization="none",
    )  # fmt: skip
    prefixes = [[5, 4], [4, 3, 5]]
    forced = found(model, config, [3, 3], padded(prefixes), 5)
    for row, prefix in enumerate(prefixes):
        outputs = [o for o in model.all_outputs(5) if o[: len(prefix)] == prefix]
        scored = sorted(((model.rescore(row, each)[0], each) for each in outputs), reverse=True)
        count = int((np.asarray(forced.lengths)[row] > 0).sum())
        assert count == len(scored) == (13 if row == 0 else 4)
        for rank, (score, tokens) in enumerate(scored):
            assert real(forced, row, rank) == tokens
            np.testing.assert_allclose(forced.scores[row, rank], score, rtol=1e-4)


def test_a_whole_target_is_as_likely_as_by_teacher_forcing():
    """Where there is room for its end alone."""
    model, target = ToyModel(1, vocabulary=9, batch=1), [4, 8, 8, 3, 5]
    for fields in METHODS.values():
        config = SearchConfig(max_length_factor=0, max_length_constant=6, **fields)
        forced = found(model, config, [3], padded([target]), 6)
        assert real(forced, 0, 0) == [*target, EOS]
        np.testing.assert_allclose(
            forced.log_probs[0, 0], model.rescore(0, [*target, EOS])[0], rtol=1e-5
        )


@pytest.mark.parametrize("method", METHODS)
def test_repetitions_may_be_forced_but_not_gone_on_with(method):
    model = ToyModel(3, vocabulary=9, batch=1)
    config = SearchConfig(
        no_repeat_ngram_size=1, max_length_factor=0, max_length_constant=8, **METHODS[method]
    )
    forced = found(model, config, [3], padded([[4, 4, 6]]), 8)
    tokens = real(forced, 0, 0)
    assert tokens[:3] == [4, 4, 6] and len(set(tokens[3:])) == len(tokens[3:])
    assert not {4, 6} & set(tokens[3:])


@pytest.mark.parametrize("method", METHODS)
def test_the_unknown_word_may_be_forced_but_not_gone_on_with(method):
    model, unknown = ToyModel(3, vocabulary=9, batch=1), SpecialIds.UNK
    config = SearchConfig(
        forbid_unknown=True, max_length_factor=0, max_length_constant=8, **METHODS[method]
    )
    forced = found(model, config, [3], padded([[unknown, 4, unknown]]), 8)
    tokens = real(forced, 0, 0)
    assert tokens[:3] == [unknown, 4, unknown] and unknown not in tokens[3:]
    log_prob, _ = model.rescore(0, tokens)
    np.testing.assert_allclose(forced.log_probs[0, 0], log_prob, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_prefix_stands_behind_the_first_token(method):
    model, config = ToyModel(4, vocabulary=9, batch=1), SearchConfig(
        first_token=7, length_normalization="none", max_length_factor=0, max_length_constant=6,
        **METHODS[method],
    )  # fmt: skip
    forced = found(model, config, [3], padded([[5, 8]]), 6)
    tokens = real(forced, 0, 0)
    assert tokens[:3] == [7, 5, 8]
    log_probs = model.distributions(0, tokens)[0][np.arange(len(tokens)), tokens]
    np.testing.assert_allclose(forced.log_probs[0, 0], log_probs[1:].sum(), rtol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_the_longest_output_ends_whatever_is_forced(method):
    model = ToyModel(4, batch=1)
    config = SearchConfig(max_length_factor=0, max_length_constant=3, **METHODS[method])
    assert real(found(model, config, [3], padded([[4, 5, 4, 4]]), 3), 0, 0) == [4, 5, EOS]


@pytest.mark.parametrize("method", METHODS)
def test_what_the_model_rules_out_can_be_forced(method):
    """Its log-probability is finite, or no hypothesis would be left."""

    def step(state, tokens):
        logits = jnp.log(jnp.array([0.0, 0.0, 0.6, 0.1, 0.3, 0.0]))
        return SoftmaxPredictions(jnp.broadcast_to(logits, (*tokens.shape, 6))), state, state

    config = SearchConfig(max_length_factor=0, max_length_constant=4, **METHODS[method])
    forced = jitted(
        step, jnp.zeros((1, 1, 1)), config, jnp.array([3]), 4, jax.random.key(0), padded([[5, 4]])
    )
    assert real(forced, 0, 0)[:2] == [5, 4]
    assert np.isfinite(forced.log_probs[0, 0])


def test_a_prefix_longer_than_a_stage_is_gone_on_with_in_the_next():
    model = CachingToy(3, batch=3)
    config = SearchConfig(beam_size=3, num_hypotheses=2)
    prefix = padded([[4, 5, 5, 4], [5], []])
    lengths = jnp.array([2, 6, 0])
    plain = ToyModel(3, batch=3)
    expected = jitted(plain.step, plain.start(), config, lengths, LONGEST, None, prefix)
    carry = None
    for room in (1, 3, LONGEST):
        stage = stage_of(model, config, room, carry, jax.random.key(1), prefix)
        carry = stage.carry
    for name, array in vars(stage.hypotheses).items():
        np.testing.assert_allclose(
            array, getattr(expected, name), rtol=1e-5, atol=1e-6, err_msg=name
        )


def test_prefixes_of_a_bucket_share_one_program():
    model, config = ToyModel(0), SearchConfig(beam_size=2)
    before = jitted._cache_size()
    for prefixes in ([[4], []], [[5, 4, 4], [4, 4]], [[], [5, 5, 5, 5, 5]]):
        found(model, config, [3, 4], padded(prefixes))
    assert jitted._cache_size() == before + 1


def test_where_a_prefix_goes_on_its_token_is_all_there_is():
    logits = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2, 6)), jnp.float32)
    predictions, longest = SoftmaxPredictions(logits), jnp.array([4, 4, 2])
    prefix = jnp.array([[4, 5], [4, PAD], [4, 5]])
    scores, normalizer = next_scores(
        predictions, SearchConfig(), jnp.int32(1), longest, prefix
    )
    np.testing.assert_array_equal(scores[1:], logits[1:])  # free, and at its end
    np.testing.assert_array_equal(scores[0, :, 5], logits[0, :, 5])
    assert np.isneginf(np.asarray(scores)[0, :, :5]).all()
    np.testing.assert_allclose(normalizer, jax.nn.logsumexp(logits, -1), rtol=1e-6)
