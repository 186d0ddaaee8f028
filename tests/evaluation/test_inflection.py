"""Scores of inflected forms against cases counted by hand, and the organisers' way to count."""

import numpy as np
import pytest

from attention_jax.evaluation.error_rates import edit_distance, pronunciation_scores
from attention_jax.evaluation.inflection import (
    exact_match,
    inflection_counts,
    inflection_scores,
    scores_by_tag,
)

OUTPUTS = ["evler", "atlar", "gece", "su"]
REFERENCES = [["evler"], ["atlara"], ["gecem", "gece"], ["göz"]]
TAGS = [["N", "PL"], ["N", "PL", "DAT"], ["N", "1", "N"], ["V"]]


def test_exact_match_and_edits_by_hand():
    """Two of four are right; one letter is missing, and three are to be written for two."""
    scores = inflection_scores(OUTPUTS, REFERENCES)
    assert {type(value) for value in scores.values()} == {float}
    assert scores == {"exact_match": 50.0, "edit_distance": pytest.approx((0 + 1 + 0 + 3) / 4)}
    counts = inflection_counts(OUTPUTS, REFERENCES)
    np.testing.assert_array_equal(counts, [[1, 0, 1], [0, 1, 1], [1, 0, 1], [0, 3, 1]])
    np.testing.assert_array_equal(exact_match(counts), [100, 0, 100, 0])


def test_edits_are_those_of_a_table_of_all_beginnings():
    """As the organisers' script has it: a cell for each pair of beginnings."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = ("".join(rng.choice(list("aıç"), rng.integers(0, 7))) for _ in range(2))
        table = np.zeros((len(other) + 1, len(one) + 1))
        table[:, 0], table[0] = np.arange(len(other) + 1), np.arange(len(one) + 1)
        for row, a in enumerate(other, 1):
            for column, b in enumerate(one, 1):
                table[row, column] = min(
                    table[row - 1, column] + 1,
                    table[row, column - 1] + 1,
                    table[row - 1, column - 1] + (a != b),
                )
        assert edit_distance(one, other) == table[-1, -1]


def test_scores_by_tag_count_a_form_once_for_each_of_its_tags():
    found = scores_by_tag(OUTPUTS, REFERENCES, TAGS)
    assert [*found] == ["N", "PL", "1", "DAT", "V"]  # the most frequent first
    assert found["N"] == (3, pytest.approx(200 / 3))
    assert found["PL"] == (2, 50.0) and found["1"] == (1, 100.0) and found["V"] == (1, 0.0)


def test_word_and_phoneme_error_rates_of_the_2021_task_by_hand():
    """One of three words has errors, two of its four phonemes; nine phonemes in all."""
    references = [["aː v"], ["p a r t n a"][:1], ["s t"]]
    outputs = ["aː v", "p a t n e", "s t"]
    assert pronunciation_scores(outputs, references) == {
        "per": pytest.approx(100 * 2 / 10), "wer": pytest.approx(100 / 3),
    }  # fmt: skip
