"""Attention against alignment: golden cases."""

import numpy as np
import pytest

from attention_jax.evaluation.attention_alignment import (
    SHIFTED,
    match,
    probability_mass,
    score_attention,
    shifted,
)
from attention_jax.evaluation.pharaoh import marked_links
from attention_jax.evaluation.word_weights import WordWeights, between_words

# EOS is the last column; the links are (source, target).
WEIGHTS = np.array([[0.5, 0.2, 0.1, 0.2], [0.1, 0.1, 0.5, 0.3], [0.05, 0.45, 0.3, 0.2]])
LINKS = [(0, 0), (1, 0), (2, 1), (0, 2)]
WORDS = [[0], [1], [2]]


def test_scores_of_koehn_and_knowles():
    weights = between_words(WEIGHTS, WORDS, WORDS)
    expected = [
        [0.625, 0.25, 0.125],
        [0.14285714, 0.14285714, 0.71428571],
        [0.0625, 0.5625, 0.375],
    ]
    np.testing.assert_allclose(weights, expected, rtol=1e-6)
    np.testing.assert_allclose(probability_mass(weights, LINKS), 0.55059524, rtol=1e-6)
    np.testing.assert_allclose(match(weights, LINKS), 2 / 3, rtol=1e-6)


def test_shifts():
    weights = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(shifted(weights, 1), [[2, 3], [4, 5], [0, 0]])
    np.testing.assert_array_equal(shifted(weights, -1), [[0, 0], [0, 1], [2, 3]])
    np.testing.assert_array_equal(shifted(weights, 0), weights)
    np.testing.assert_array_equal(shifted(weights, 1, "source"), [[1, 0], [3, 0], [5, 0]])
    np.testing.assert_array_equal(shifted(weights, -1, "source"), [[0, 0], [0, 2], [0, 4]])
    np.testing.assert_array_equal(shifted(weights[:0], 1), weights[:0])


def test_a_row_without_weights_matches_nothing():
    weights = np.array([[0.0, 0.0], [0.2, 0.8]])
    assert match(weights, [(0, 0), (1, 1)]) == 0.5
    assert match(np.array([[0.0, 1.0, 0.0]]), [(0, 0), (1, 0)]) == 0.5


@pytest.mark.parametrize(
    ("shift", "best"), [(-1, "match_after"), (0, "match"), (1, "match_before")]
)
def test_attention_that_is_off_by_one_is_told(shift, best):
    gold = marked_links([(place, place) for place in range(5)])
    scores = score_attention([shifted(np.eye(5), shift)], [gold])
    names = ("match_before", "match", "match_after")
    # The word that has no row before or after it is left out, and no weight is no match.
    assert {name: scores[name] for name in names} == {
        name: pytest.approx(100.0 * (name == best)) for name in names
    }
    assert scores["aer"] == pytest.approx(0) if best == "match" else scores["aer"] > 50


@pytest.mark.parametrize("best", SHIFTED)
def test_the_side_on_which_attention_is_off_by_one_is_told(best):
    """No two target words in a row belong to source words in a row."""
    side, shift = SHIFTED[best]
    sources = [2, 0, 4, 1, 3]
    weights = shifted(np.eye(5)[sources], -shift, side)
    gold = marked_links((source, target) for target, source in enumerate(sources))
    scores = score_attention([weights], [gold])
    for name in ("match", "probability_mass"):
        for suffix in SHIFTED:
            assert (scores[f"{name}{suffix}"] == 100) == (suffix == best), suffix


def test_attention_that_is_the_gold_links_has_all_points():
    sources = [3, 0, 2, 1]
    links = [(source, target) for target, source in enumerate(sources)]
    assert match(np.eye(4)[sources], links) == probability_mass(np.eye(4)[sources], links) == 1


def test_uniform_attention_has_the_mass_of_linked_words_by_hand():
    """Of four source words two and one are linked: (2/4 + 1/4) / 2; all are the most attended."""
    weights, links = np.full((3, 4), 0.25), [(0, 0), (1, 0), (3, 2)]
    assert probability_mass(weights, links) == pytest.approx(3 / 8)
    assert match(weights, links) == 1


def test_scores_are_in_percent_and_skip_pairs_without_links():
    weights = between_words(WEIGHTS, WORDS, WORDS)
    nothing = marked_links([])
    scores = score_attention([weights, weights], [marked_links(LINKS), nothing])
    np.testing.assert_allclose(scores["probability_mass"], 55.059524, rtol=1e-6)
    np.testing.assert_allclose(scores["match"], 200 / 3, rtol=1e-6)
    # Argmax links: 0-0, 2-1, 1-2 twice, of which two of the first pair are right.
    np.testing.assert_allclose(scores["alignment_precision"], 100 / 3, rtol=1e-6)
    np.testing.assert_allclose(scores["alignment_recall"], 50, rtol=1e-6)
    np.testing.assert_allclose(scores["aer"], 60, rtol=1e-6)


def test_words_of_one_token_are_linked_alike_and_weighed_in_shares():
    """Two source words are one token: linked in whole, and each with half of its weight."""
    gold = marked_links([(0, 0), (1, 0), (2, 1)])
    weights = np.array([[0.55, 0.45], [0.2, 0.8]])
    words = WordWeights.of_tokens(weights, [[0], [0], [1]], [[0], [1]])
    scores = score_attention([words], [gold])
    assert scores["aer"] == pytest.approx(0, abs=1e-9)
    assert scores["alignment_precision"] == scores["alignment_recall"] == 100
    assert scores["probability_mass"] == pytest.approx(100 * (0.55 + 0.8) / 2)
    assert scores["saer"] == pytest.approx(100 * (1 - 2 * (0.55 + 0.8) / (2 + 3)))
    shares = score_attention([words.weights], [gold])
    assert shares["aer"] == pytest.approx(60)  # 2-0 and 2-1, of which one is right
    assert {**shares, **scores} == scores
    linked = {"aer", "alignment_precision", "alignment_recall"}
    assert {name for name in scores if scores[name] != shares[name]} == linked
