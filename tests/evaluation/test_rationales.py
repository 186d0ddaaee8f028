"""Rationales against marked evidence: cases counted by hand."""

import numpy as np
import pytest

from attention_jax.evaluation.rationales import (
    best_words,
    overlap,
    rationale_scores,
    spans_of,
    words_of,
)


def chosen(text):
    return np.array([sign == "x" for sign in text], bool)


def test_spans_are_runs_and_words_are_theirs():
    assert spans_of(chosen("xx.x..x")) == [(0, 2), (3, 4), (6, 7)]
    assert spans_of(chosen("...")) == spans_of(chosen("")) == []
    np.testing.assert_array_equal(words_of([(0, 2), (1, 3)], 4), chosen("xxx."))


def test_overlap_is_of_the_union():
    assert overlap((0, 2), (1, 4)) == 0.25
    assert overlap((0, 2), (2, 4)) == 0.0
    assert overlap((1, 3), (1, 3)) == 1.0


def test_best_words_are_the_first_of_equal_ones():
    np.testing.assert_array_equal(best_words(np.array([0.1, 0.4, 0.4, 0.1]), 1), chosen(".x.."))
    np.testing.assert_array_equal(best_words(np.array([0.1, 0.4]), 5), chosen("xx"))


def test_f1_of_words_and_of_spans():
    """Document 1: 2 of 3 selected words are marked, of 4: p 2/3, r 1/2, F1 4/7; the span (0, 2)
    has overlap 2/4 with (0, 4) and matches, (5, 6) does not. Document 2: all 2 of 2 right.
    Spans: mean precision (1/2 + 1) / 2, mean recall 1."""
    found = rationale_scores([chosen("xx...x"), chosen("..xx")], [((0, 4),), ((2, 4),)])
    assert found == pytest.approx({
        "token_f1": 100 * (4 / 7 + 1) / 2, "token_precision": 100 * (2 / 3 + 1) / 2,
        "token_recall": 75.0, "iou_f1": 100 * 2 * 0.75 / 1.75,
        "selected_share": 50.0, "evidence_share": 60.0,
    })  # fmt: skip


def test_nothing_selected_and_nothing_marked():
    nothing = rationale_scores([chosen("...")], [((0, 1),)])
    assert nothing["token_f1"] == nothing["iou_f1"] == nothing["selected_share"] == 0.0
    unmarked = rationale_scores([chosen("xx")], [()])
    assert unmarked["token_f1"] == 0.0 and unmarked["selected_share"] == 100.0
    assert rationale_scores([], [])["selected_share"] == 0.0
