"""Alignments from attention against cases worked out by hand."""

import numpy as np
import pytest

from attention_jax.evaluation.alignment import (
    drop_ends,
    links_from_weights,
    merge_pieces,
    to_pharaoh,
)

WITH_ENDS = np.array(
    [[0.5, 0.2, 0.1, 0.2], [0.1, 0.1, 0.5, 0.3], [0.05, 0.45, 0.3, 0.2], [0, 0, 0, 1.0]]
)


def test_drop_ends_golden():
    expected = [[0.625, 0.25, 0.125], [1 / 7, 1 / 7, 5 / 7], [0.0625, 0.5625, 0.375]]
    np.testing.assert_allclose(drop_ends(WITH_ENDS), expected)
    assert drop_ends(WITH_ENDS, target=False).shape == (4, 3)
    assert not np.any(drop_ends(WITH_ENDS, target=False)[3])
    np.testing.assert_array_equal(drop_ends(WITH_ENDS, source=False), WITH_ENDS[:3])


def test_drop_ends_keeps_what_a_row_sums_to():
    weights = np.array([[0.2, 0.3, 0.1], [0.0, 0.0, 0.0], [0.1, 0.1, 0.1]])
    np.testing.assert_allclose(drop_ends(weights).sum(axis=1), [0.6, 0.0])


def test_merge_pieces_golden():
    weights = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    words = merge_pieces(weights, [[0, 1], [2]], [[0], [1, 2]])
    np.testing.assert_allclose(words, [[0.8, 0.2], [0.45, 0.55]])


def test_a_piece_of_several_words_is_shared_among_them():
    # Source words 0 and 1 are one piece, as are target words 1 and 2; word 3 has a piece beside.
    weights = np.array([[0.6, 0.4], [0.2, 0.8], [0.1, 0.9]])
    words = merge_pieces(weights, [[0], [0], [1]], [[0], [1], [1], [1, 2]])
    last = (np.array([0.2, 0.8]) / 3 + np.array([0.1, 0.9])) / (4 / 3)
    expected = [[0.3, 0.3, 0.4], [0.1, 0.1, 0.8], [0.1, 0.1, 0.8]]
    np.testing.assert_allclose(words, [*expected, [last[0] / 2, last[0] / 2, last[1]]])


def test_merge_pieces_refuses_pieces_without_words():
    with pytest.raises(ValueError, match=r"\(3, 2\).*\(3, 3\)"):
        merge_pieces(np.ones((3, 3)), [[0], [1]], [[0], [1, 2]])


def test_links_are_source_target_pairs_of_the_largest_weights():
    weights = drop_ends(WITH_ENDS)
    assert links_from_weights(weights) == [(0, 0), (1, 2), (2, 1)]
    assert to_pharaoh(links_from_weights(weights)) == "0-0 1-2 2-1"


def test_links_leave_out_rows_without_weight():
    assert links_from_weights(np.array([[0.0, 0.0], [0.1, 0.9]])) == [(1, 1)]
    assert links_from_weights(np.zeros((2, 0))) == []
    assert links_from_weights(np.zeros((0, 2))) == []


def test_pharaoh_names_the_source_first():
    assert to_pharaoh([(0, 0), (1, 12), (2, 1)]) == "0-0 1-12 2-1"
    assert to_pharaoh([]) == ""
