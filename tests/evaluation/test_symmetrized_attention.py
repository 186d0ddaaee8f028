"""Attention of both directions, and thresholds, against gold links."""

import numpy as np
import pytest

from attention_jax.evaluation.aer import count_links
from attention_jax.evaluation.pharaoh import marked_links
from attention_jax.evaluation.symmetrization import METHODS
from attention_jax.evaluation.symmetrized_attention import (
    agreed_links,
    extract_links,
    product_links,
    score_both_directions,
    score_threshold,
)
from attention_jax.evaluation.word_weights import WordWeights

# Forward (T x S = 3 x 2): target 0 -> source 0, 1 -> 1, 2 -> 1. Reverse (S x T = 2 x 3): source
# 0 -> target 0, 1 -> 2.
FORWARD = np.array([[0.7, 0.3], [0.25, 0.75], [0.4, 0.6]])
REVERSE = np.array([[0.8, 0.1, 0.1], [0.1, 0.3, 0.6]])


def test_links_by_argmax_and_by_threshold():
    assert extract_links([FORWARD]) == [[(0, 0), (1, 1), (1, 2)]]
    assert extract_links([FORWARD], 0.4) == [[(0, 0), (0, 2), (1, 1), (1, 2)]]
    assert extract_links([FORWARD], 1.0) == [[]]


def test_each_way_of_symmetrising_is_scored():
    gold = marked_links([(0, 0), (1, 2)])
    scores = score_both_directions([FORWARD], [REVERSE], [gold])
    assert set(scores) == {
        f"{name}_{each.replace('-', '_')}"
        for name in ("aer", "alignment_precision", "alignment_recall")
        for each in ("reverse", *METHODS, "product", "geometric_mean")
    }
    assert scores["aer_reverse"] == scores["aer_intersection"] == 0
    # The union has (1, 1) besides: 1 - (2 + 2) / (3 + 2). It is next to (1, 2) and its target word
    # is free, so that growing adds it.
    assert scores["aer_union"] == scores["aer_grow_diag"] == pytest.approx(20)
    assert scores["alignment_precision_union"] == pytest.approx(200 / 3)
    assert scores["alignment_recall_union"] == scores["alignment_precision_reverse"] == 100


def test_what_one_direction_is_sure_of_decides_in_the_product():
    """Target word 1 wavers to source word 0, which is sure to be another's: .55 .1 < .45 .9."""
    forward = np.array([[0.9, 0.1], [0.55, 0.45]])
    reverse = np.array([[0.9, 0.1], [0.1, 0.9]])
    assert product_links(forward, reverse) == {(0, 0), (1, 1)}
    gold = marked_links([(0, 0), (1, 1)])
    scores = score_both_directions([forward], [reverse], [gold])
    assert scores["aer_product"] == 0 < scores["aer_grow_diag"]
    # A word that neither model links has none.
    assert product_links(np.eye(2) * [[1], [0]], np.eye(2)) == {(0, 0)}


def test_words_are_linked_where_both_directions_agree_enough():
    """sqrt(.7 .8) = .75, sqrt(.25 .1) = .16, sqrt(.75 .3) = .47, sqrt(.6 .6) = .6, and so on."""
    assert agreed_links(FORWARD, REVERSE) == [(0, 0), (1, 2)]
    assert agreed_links(FORWARD, REVERSE, 0.45) == [(0, 0), (1, 1), (1, 2)]
    gold = marked_links([(0, 0), (1, 2)])
    assert score_both_directions([FORWARD], [REVERSE], [gold])["aer_geometric_mean"] == 0
    scores = score_both_directions([FORWARD], [REVERSE], [gold], 0.45)
    assert scores["aer_threshold_geometric_mean"] == pytest.approx(20)  # 1 - (2 + 2) / (3 + 2)
    # A word that neither is sure of has none, one that two words are sure of has both.
    assert agreed_links(np.full((2, 1), 0.5), np.array([[0.5, 0.1]])) == [(0, 0)]
    assert agreed_links(np.array([[0.5, 0.5]]), np.ones((2, 1))) == [(0, 0), (1, 0)]


def test_sides_are_not_mixed_up():
    """Links that lie off the diagonal have to come out as (source, target) in both directions."""
    gold = marked_links([(1, 0), (2, 1), (0, 2)])
    forward = np.eye(3)[[1, 2, 0]]
    scores = score_both_directions([forward], [forward.T], [gold])
    assert all(value == (0 if name.startswith("aer") else 100) for name, value in scores.items())
    wrong = score_both_directions([forward], [forward], [gold])
    assert wrong["aer_reverse"] == pytest.approx(100)


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_words_of_one_token_are_linked_alike_in_both_directions(threshold):
    """Source words 0 and 1 are one token, as are target words 1 and 2."""
    source, target = [[0], [0], [1]], [[0], [1], [1]]
    forward = WordWeights.of_tokens(np.array([[0.4, 0.6], [0.55, 0.45]]), source, target)
    reverse = WordWeights.of_tokens(np.array([[0.45, 0.55], [0.6, 0.4]]), target, source)
    gold = marked_links([(2, 0), (0, 1), (0, 2), (1, 1), (1, 2)])
    scores = score_both_directions([forward], [reverse], [gold], threshold)
    kind = "" if threshold is None else "_threshold"
    assert {scores[f"aer{kind}{end}"] for end in ("_reverse", "_intersection", "_union")} == {0}
    assert threshold or scores["aer_product"] == 0
    shares = score_both_directions([forward.weights], [reverse.weights], [gold], threshold)
    assert shares[f"aer{kind}_reverse"] > 50


def test_thresholds_are_scored_under_their_own_names():
    gold = marked_links([(0, 0), (1, 2)], [(1, 1)])
    links = [[(0, 0), (0, 2), (1, 1), (1, 2)]]
    expected = count_links(links, [gold])
    scores = score_threshold([FORWARD], [gold], 0.4)
    assert scores == {
        "aer_threshold": pytest.approx(expected.aer),
        "alignment_precision_threshold": pytest.approx(75),
        "alignment_recall_threshold": pytest.approx(100),
    }
    both = score_both_directions([FORWARD], [REVERSE], [gold], threshold=0.4)
    assert both["aer_threshold_reverse"] == 0  # 0.8 and 0.6 alone
    assert both["aer_threshold_union"] == pytest.approx(expected.aer)
    assert both["alignment_precision_threshold_intersection"] == 100
    assert both["alignment_recall_threshold_union"] == 100
