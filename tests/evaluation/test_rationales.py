"""Rationales against marked evidence: cases counted by hand."""

import numpy as np
import pytest

from attention_jax.evaluation.rationales import (
    best_words,
    document_scores,
    overlap,
    rationale_counts,
    rationale_scores,
    scores_of_sums,
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
    np.testing.assert_array_equal(best_words(np.array([0.1, 0.4, 0.4, 0.1]), 0.25), chosen(".x.."))
    np.testing.assert_array_equal(best_words(np.array([0.1, 0.4]), 1.0), chosen("xx"))
    np.testing.assert_array_equal(best_words(np.array([0.1, 0.4]), 0.2), chosen(".."))


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


def test_documents_without_evidence_or_selection_count_as_in_the_benchmark():
    """Document 1 is right. In 2 words are selected and none is marked, in 3 the other way round:
    F1 0 of three documents; precision of spans 1 and 0 of documents 1 and 2, recall 1 and 0 of 1
    and 3. In 4 there is neither."""
    selected = [chosen(signs) for signs in ("xx..", "x...", "...", "...")]
    found = rationale_scores(selected, [((0, 2),), (), ((0, 1),), ()])
    assert found["token_f1"] == found["token_precision"] == pytest.approx(100 / 3)
    assert found["iou_f1"] == pytest.approx(50.0)


def test_no_selection_finds_a_span_without_a_word():
    """Precision of spans 1, recall 1/2; a document with such a span only has no word that is
    marked: its recall is 0, and its words are left out."""
    found = rationale_scores([chosen("xx..")], [((0, 2), (3, 3))])
    assert found["token_f1"] == pytest.approx(100) and found["iou_f1"] == pytest.approx(200 / 3)
    more = rationale_scores([chosen("xx.."), chosen("..")], [((0, 2), (3, 3)), ((1, 1),)])
    assert more["token_f1"] == pytest.approx(100) and more["iou_f1"] == pytest.approx(40.0)


def test_scores_are_of_sums_of_documents():
    counts = rationale_counts([chosen("xx...x"), chosen("..xx")], [((0, 4),), ((2, 4),)])
    np.testing.assert_array_equal(counts, [[2, 3, 4, 6, 1, 2, 1], [2, 2, 2, 4, 1, 1, 1]])
    rows = document_scores(counts)
    np.testing.assert_array_equal(rows[1], np.concatenate([np.ones(8), [2, 2, 4]]))
    several = scores_of_sums(np.stack([rows.sum(axis=0), rows[0]]))
    np.testing.assert_allclose(several["token_f1"], [100 * (4 / 7 + 1) / 2, 400 / 7])
    np.testing.assert_allclose(several["iou_f1"], [100 * 1.5 / 1.75, 200 / 3])
