"""Statistics of attention on matrices whose values are known."""

import numpy as np
import pytest

from attention_jax.evaluation.attention_statistics import (
    attention_statistics,
    monotonicity,
    normalized_entropy,
    share_inside,
    shares_inside,
)


def test_normalized_entropy_of_hard_and_uniform_rows():
    weights = np.array([[1.0, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0]])
    np.testing.assert_allclose(normalized_entropy(weights), [0, 1, 0.5], atol=1e-12)
    assert not np.signbit(normalized_entropy(weights)[0])
    np.testing.assert_array_equal(normalized_entropy(np.ones((2, 1))), [0, 0])
    weights = np.array([[0.1, 0.1], [0.02, 0], [0, 0]])  # beside a sink
    np.testing.assert_allclose(normalized_entropy(weights), [1, 0, 0], atol=1e-12)
    weights = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]])
    found = normalized_entropy(weights, np.array([1, 2, 3]))
    np.testing.assert_allclose(found, [0, 1, 1.5 * np.log(2) / np.log(3)])


def test_monotonicity_counts_steps_that_do_not_go_back():
    assert monotonicity(np.eye(5)) == 1
    assert monotonicity(np.eye(5)[::-1]) == 0
    assert monotonicity(np.eye(3)[[0, 2, 1, 1]]) == pytest.approx(2 / 3)
    assert monotonicity(np.eye(3)[:1]) == 1
    # Means 1.0, 1.0, 0.9.
    weights = np.array([[0.25, 0.5, 0.25], [0, 1.0, 0], [0.3, 0.5, 0.2]])
    assert monotonicity(weights) == 0.5


def test_monotonicity_leaves_out_rows_without_weight():
    assert monotonicity(np.array([[0, 1.0], [0, 0], [0, 1.0]])) == 1


def test_attention_statistics_average_over_tokens():
    hard = np.eye(3)
    spread = np.full((2, 2), 0.5)
    statistics = attention_statistics([hard, spread])
    assert statistics["attention_entropy"] == pytest.approx(2 / 5)
    assert statistics["attention_monotonicity"] == 1
    assert statistics["attention_eos_mass"] == pytest.approx(0.5 / 3)


def test_attention_statistics_of_nothing():
    assert attention_statistics([]) == {}
    assert attention_statistics([np.ones((1, 1))]) == {"attention_entropy": 0.0}


def test_share_inside_is_a_mean_over_steps_that_have_a_region():
    inside = np.array([[True, True, False], [False] * 3, [False, False, True]])
    weights = np.array([[0.5, 0.25, 0.25], [1, 0, 0], [0.1, 0, 0.1], [0, 0, 1.0]])
    # 0.75 of the first step, 0.5 of the third; the second has no region, nor has EOS.
    assert share_inside([(weights, inside)]) == pytest.approx(0.625)
    assert share_inside([(weights, inside[1:2])]) is None
    assert share_inside([(0 * weights, inside)]) is None
    np.testing.assert_allclose(shares_inside(weights, inside), [0.75, 0.5])
