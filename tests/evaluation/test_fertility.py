"""Fertility of attention: what counts, what does not, and pooling."""

import numpy as np
import pytest

from attention_jax.evaluation.fertility import covering_weights, fertility_scores


def test_scores_are_over_all_words_of_all_sentences(numpy_rng):
    matrices = [
        numpy_rng.dirichlet(np.full(size, 0.3), length) for size, length in [(3, 5), (8, 4), (6, 9)]
    ]
    words = [sum(row[j] for row in matrix) for matrix in matrices for j in range(matrix.shape[1])]
    expected = {
        "dropped_source": 100 * sum(f < 0.5 for f in words) / len(words),
        "repeated_source": 100 * sum(f > 1.5 for f in words) / len(words),
        "coverage_excess": sum(f - 1 for f in words if f > 1) / len(words),
        "coverage_deviation": sum(abs(1 - f) for f in words) / len(words),
    }
    assert fertility_scores(matrices) == pytest.approx(expected)


def test_words_at_the_thresholds_are_neither_dropped_nor_repeated():
    scores = fertility_scores([np.array([[0.5, 1.5]])])
    assert scores["dropped_source"] == scores["repeated_source"] == 0


def test_an_output_without_words_drops_every_source_word():
    assert fertility_scores([np.zeros((0, 4))])["dropped_source"] == 100
    assert fertility_scores([]) == fertility_scores([np.zeros((3, 0))]) == {}


def test_covering_weights_leave_out_ends_and_do_not_make_up_for_them():
    weights = np.array([[0.2, 0.3, 0.1, 0.4], [0.1, 0.1, 0.2, 0.6], [0, 0.5, 0.5, 0], [0, 0, 0, 1]])
    found = covering_weights(weights, [[0, 1], [2]], [[0], [1, 2]])
    np.testing.assert_allclose(found, [[0.5, 0.1], [0.35, 0.35]])


def test_covering_weights_leave_out_tokens_of_no_word_on_both_sides():
    weights = np.array([[0.2, 0.3, 0.1, 0.4], [0.1, 0.1, 0.2, 0.6], [0, 0.5, 0.5, 0], [0, 0, 0, 1]])
    found = covering_weights(weights, [[2], [1]], [[1, 2]])  # column 0 and row 0 only begin texts
    np.testing.assert_allclose(found, [[0.35, 0.3]])


def test_covering_weights_of_an_empty_output_cover_nothing():
    found = covering_weights(np.ones((1, 4)) / 4, [[0, 1], [2]], [])
    assert found.shape == (0, 2)
