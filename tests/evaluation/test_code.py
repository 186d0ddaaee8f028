"""Exact match of programs and recall of the words in question, counted by hand."""

import numpy as np
import pytest

from attention_jax.evaluation.code import match_counts, matched, recall, recall_counts


def test_a_program_is_right_if_it_is_one_of_the_accepted():
    outputs = [["a", "b"], ["a"], []]
    references = [[["b"], ["a", "b"]], [["a", "a"]], [[]]]
    counts = match_counts(outputs, references)
    np.testing.assert_array_equal(counts, [[1, 1], [0, 1], [1, 1]])
    assert matched(counts.sum(axis=0)) == pytest.approx(200 / 3)
    with pytest.raises(ValueError, match="expected"):
        match_counts([], [])


def test_words_count_as_often_as_both_have_them():
    outputs = [["x", "x", "f", "("], ["y"], ["f"]]
    references = [["f", "(", "x", "x", "x", "y"], ["x"], ["f"]]
    counts = recall_counts(outputs, references, {"f", "("})
    np.testing.assert_array_equal(counts, [[2, 4], [0, 1], [0, 0]])
    assert recall(counts.sum(axis=0)) == 40.0 and recall(counts[2]) == 0.0
