"""Statistics of heads, by hand and by loops."""

import numpy as np
import pytest

from attention_jax.evaluation.head_statistics import diagonality, head_statistics, offset_mass


def test_diagonality_by_hand():
    assert diagonality(np.eye(3)) == 1.0
    assert diagonality(np.eye(3)[::-1]) == pytest.approx(1 - 2 / 3)
    assert diagonality(np.eye(2)[::-1]) == 0.0
    assert diagonality(np.full((2, 2), 0.5)) == 0.5
    assert diagonality(np.array([[1.0, 0.0], [0.0, 0.0]])) == 1.0  # a row without weight
    assert diagonality(np.ones((1, 4))) == diagonality(np.zeros((3, 3))) == 1.0


def test_diagonality_is_that_of_the_formula(numpy_rng):
    weights = numpy_rng.dirichlet(np.ones(5), size=4)
    far = [weights[t, s] * abs(s / 4 - t / 3) for t in range(4) for s in range(5)]
    assert diagonality(weights) == pytest.approx(1 - sum(far) / 4)


def test_offset_mass_by_hand():
    weights = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]])
    assert offset_mass(weights, 0) == pytest.approx(0.5)
    assert offset_mass(weights, -1) == pytest.approx(0.6)
    assert offset_mass(weights, 1) == pytest.approx(0.15)
    assert np.isnan(offset_mass(weights, 5))


def test_sentences_without_a_step_at_a_distance_do_not_count():
    short, longer = np.ones((1, 1, 1)), np.array([[[0.0, 1.0], [0.0, 1.0]]])
    (found,) = head_statistics([short, longer])
    assert (found["offset"], found["positional"]) == (1.0, 1.0)
    (found,) = head_statistics([short])
    assert (found["offset"], found["positional"]) == (0.0, 1.0)


def test_attention_is_even_where_it_is_so_over_what_can_be_reached():
    rows = np.arange(1, 6)
    even = np.tril(np.ones((5, 5))) / rows[:, None]
    hard, last = np.eye(5), np.tile(np.arange(5) == 0, (5, 1)).astype(float)
    reach = np.tile(rows, (3, 1))
    found = head_statistics([np.stack([even, hard, last])], [reach])
    assert [head["entropy"] for head in found] == pytest.approx([1, 0, 0])
    even[2] = 0.0  # a row that attends to nothing says nothing
    (found,) = head_statistics([even[None]], [rows[None]])
    assert found["entropy"] == pytest.approx(1)
    (alone,) = head_statistics([np.ones((1, 1, 1))], [np.ones((1, 1), int)])
    assert alone["entropy"] == 0


def test_heads_are_told_apart():
    here, before = np.eye(4), np.eye(4, k=-1) + np.eye(4)[:, :1] * np.eye(4)[:1].T
    first, second = head_statistics([np.stack([here, before])] * 2)
    assert (first["offset"], first["positional"], first["entropy"]) == (0.0, 1.0, 0.0)
    assert (second["offset"], second["positional"]) == (-1.0, 1.0)
    assert first["diagonality"] > second["diagonality"]
    assert head_statistics([]) == []
