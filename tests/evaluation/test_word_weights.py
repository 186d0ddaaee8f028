"""Attention between words, and its links: cases by hand, and words that share tokens."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from attention_jax.evaluation.alignment import links_above, links_from_weights, membership
from attention_jax.evaluation.word_weights import WordWeights, between_words


def test_tokens_are_summed_for_a_source_word_and_averaged_for_a_target_word():
    weights = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    found = between_words(weights, [[0, 1], [2]], [[0], [1, 2]])
    np.testing.assert_allclose(found, [[0.8, 0.2], [0.45, 0.55]], rtol=1e-6)


def test_a_token_of_two_words_is_shared_and_a_token_of_none_left_out():
    weights = np.array([[0.4, 0.2, 0.4], [0.0, 0.0, 1.0]])
    found = between_words(weights, [[0], [0, 1]], [[0], [1]])
    np.testing.assert_allclose(found, [[1 / 3, 2 / 3], [0, 0]], rtol=1e-6)


def test_words_of_the_same_tokens_are_linked_alike():
    # Halved between its two words, the first token would be behind the second one.
    weights = np.array([[0.55, 0.45], [0.2, 0.8]])
    words = WordWeights.of_tokens(weights, [[0], [0], [1]], [[0], [1], [1]])
    assert words.links() == [(0, 0), (1, 0), (2, 1), (2, 2)]
    assert links_from_weights(words.weights) == [(2, 0), (2, 1), (2, 2)]
    np.testing.assert_allclose(words.weights[0], [0.275, 0.275, 0.45])
    np.testing.assert_allclose(words.whole[0], [0.55, 0.55, 0.45])


def test_a_word_of_a_shared_token_and_of_another_is_like_no_other():
    words = WordWeights.of_tokens(np.array([[0.5, 0.1, 0.4]]), [[0], [0, 1], [2], []], [[0], []])
    assert words.links() == [(1, 0)]
    assert words.alike == [[0], [1], [2], [3]]


def test_eos_is_left_out_of_links():
    weights = np.array([[0.3, 0.1, 0.6], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    words = WordWeights.of_tokens(weights, [[0], [0], [1]], [[0], [1]])
    assert words.links() == [(0, 0), (1, 0)]  # of a word wholly on EOS none


def test_tokens_of_a_target_word_count_alike_however_much_they_give_to_eos():
    weights = np.array([[0.09, 0.01, 0.9], [0.45, 0.55, 0.0]])
    words = WordWeights.of_tokens(weights, [[0], [1]], [[0, 1]])
    np.testing.assert_allclose(words.weights, [[0.675, 0.325]])
    assert words.links() == [(0, 0)]


def test_a_threshold_is_of_what_is_linked():
    weights = np.array([[0.6, 0.4], [0.45, 0.55]])
    words = WordWeights.of_tokens(weights, [[0], [0], [1]], [[0], [1]])
    assert words.links(0.5) == [(0, 0), (1, 0), (2, 1)]
    assert words.links(0.42) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1)]


@hypothesis.given(st.data())
def test_without_shared_tokens_weights_are_linked_as_they_are(data):
    """As are those of words that are made by hand, of rows that each sum to one."""
    sizes = data.draw(st.tuples(st.integers(1, 8), st.integers(1, 8)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    weights = rng.dirichlet(np.full(sizes[1], 0.3), sizes[0]).astype(np.float32)
    target, source = (_words_of_their_own(data, size) for size in sizes)
    words = WordWeights.of_tokens(weights, source, target)
    cut = weights[:, : sizes[1] - 1].astype(np.float64)
    rows = cut.sum(axis=1, keepdims=True)
    rows = np.divide(cut, rows, out=np.zeros_like(cut), where=rows > 0)
    merged = membership(target, sizes[0]).T @ rows @ membership(source, sizes[1])[:-1]
    total = merged.sum(axis=1, keepdims=True)
    merged = np.divide(merged, total, out=np.zeros_like(merged), where=total > 0)
    np.testing.assert_allclose(words.weights, merged, atol=1e-12)
    np.testing.assert_allclose(words.whole, merged, atol=1e-12)
    assert words.links() == links_from_weights(words.weights)
    assert words.links(0.3) == links_above(words.weights, 0.3)
    assert WordWeights.of(words) is words
    assert WordWeights.of(words.weights).links() == words.links()


def _words_of_their_own(data, size):
    """Cuts all tokens but EOS into words."""
    begins = data.draw(st.sets(st.integers(1, size - 1))) if size > 1 else set()
    cuts = [0, *sorted(begins - {size - 1}), size - 1]
    return [[*range(*pair)] for pair in zip(cuts, cuts[1:], strict=False)]


@pytest.mark.parametrize("shape", [(0, 2), (2, 0)])
def test_nothing_is_linked_with_nothing(shape):
    tokens = [[[place] for place in range(size)] for size in shape]
    assert WordWeights.of_tokens(np.zeros(shape), tokens[1], tokens[0]).links() == []
