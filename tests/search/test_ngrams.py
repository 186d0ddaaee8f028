"""No n-gram occurs twice in an output, by every method."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.search import SearchConfig
from attention_jax.search.ngrams import without_repeats
from tests.search import reference
from tests.search.toy_model import EOS, UNK, ToyModel, jitted, real

ruled_out = jax.jit(without_repeats, static_argnums=3)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9, 10, 12])
def test_ruled_out_is_what_would_repeat(size, numpy_rng):
    written = numpy_rng.integers(3, 6, size=(7, 2, 9))
    logits = numpy_rng.normal(size=(7, 2, 8)).astype(np.float32)
    for position in range(9):
        found = np.asarray(ruled_out(logits, written.astype(np.int32), np.int32(position), size))
        for place in np.ndindex(7, 2):
            prefix = written[place][:position].tolist()
            grams = {tuple(prefix[n : n + size]) for n in range(position - size + 1)}
            last = prefix[position - size + 1 :] if position >= size - 1 else None
            for token in range(8):
                repeats = last is not None and (*last, token) in grams
                expected = -np.inf if repeats else logits[place][token]
                assert found[place][token] == expected


def test_a_token_that_is_certain_may_repeat():
    written = jnp.full((1, 2, 4), 5, jnp.int32)
    logits = jnp.full((1, 2, 8), -jnp.inf).at[:, 0, 5].set(0.0).at[:, 1, 4:6].set(0.0)
    certain, uncertain = ruled_out(logits, written, jnp.int32(3), 2)[0]
    assert np.flatnonzero(certain > -np.inf) == [5]
    assert np.flatnonzero(uncertain > -np.inf) == [4]


@pytest.mark.parametrize("size", [1, 2])
def test_beam_of_full_width_equals_exhaustive_search(size):
    model = ToyModel(0, batch=4)
    config = SearchConfig(
        beam_size=45, num_hypotheses=6, max_length_factor=0, max_length_constant=4,
        length_normalization="none", no_repeat_ngram_size=size,
        coverage_penalty="summary", coverage_beta=0.5,
    )  # fmt: skip
    found = jitted(model.step, model.start(), config, jnp.full(4, 3), 4)
    for row in range(4):
        scored = [
            (reference.score(model, row, tokens, config, 3), tokens)
            for tokens in model.all_outputs(4)
            if not reference.has_repeats(tokens, size)
        ]
        scored.sort(reverse=True)
        for rank, (score, tokens) in enumerate(scored[:6]):
            assert real(found, row, rank) == tokens
            np.testing.assert_allclose(found.scores[row, rank], score, rtol=1e-4)


METHODS = {
    "greedy": {"method": "greedy"},
    "beam": {"method": "beam", "beam_size": 4, "num_hypotheses": 4},
    "sample": {"method": "sample", "num_hypotheses": 4, "temperature": 0.2, "top_k": 3},
}


def searched(model, size, **settings):
    config = SearchConfig(
        min_length_ratio=1.0, max_length_factor=1.0, max_length_constant=0,
        no_repeat_ngram_size=size, **settings,
    )  # fmt: skip
    lengths = jnp.array([14, 14, 9])
    found = jitted(model.step, model.start(), config, lengths, 14, jax.random.key(3))
    return found, list(np.ndindex(*found.lengths.shape))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 3])
def test_no_ngram_occurs_twice(method, size):
    model = ToyModel(4, vocabulary=22, batch=3, scale=0.5)
    found, places = searched(model, size, **METHODS[method])
    for row, rank in places:
        tokens = real(found, row, rank)
        assert len(tokens) == [14, 14, 9][row] and not reference.has_repeats(tokens, size)
        # The model's own probabilities, as if nothing had been ruled out.
        log_prob, _ = model.rescore(row, tokens)
        np.testing.assert_allclose(found.log_probs[row, rank], log_prob, rtol=1e-4)


def test_greedy_takes_the_most_probable_token_that_does_not_repeat():
    model = ToyModel(4, vocabulary=9, batch=3)
    plain, _ = searched(model, 0, method="greedy")
    assert any(reference.has_repeats(real(plain, row, 0), 2) for row in range(3))
    found, _ = searched(model, 2, method="greedy")
    for row, length in enumerate([14, 14, 9]):
        tokens = []
        while len(tokens) < length - 1:
            log_probs = model.distributions(row, [*tokens, EOS])[0][-1]
            log_probs[:UNK] = -np.inf
            allowed = [not reference.has_repeats([*tokens, token], 2) for token in range(9)]
            tokens.append(int(np.argmax(np.where(allowed, log_probs, -np.inf))))
        assert real(found, row, 0) == [*tokens, EOS]


@pytest.mark.parametrize("method", METHODS)
def test_an_output_ends_where_nothing_else_is_left(method):
    model = ToyModel(4, vocabulary=7, batch=3)
    found, places = searched(model, 1, **METHODS[method])
    for place in places:
        assert sorted(real(found, *place)[:-1]) == [UNK, 4, 5, 6]
        assert real(found, *place)[-1] == EOS
        log_prob, _ = model.rescore(place[0], real(found, *place))
        np.testing.assert_allclose(found.log_probs[place], log_prob, rtol=1e-4)
