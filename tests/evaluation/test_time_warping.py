"""Dynamic time warping against all paths, and the starts of words by hand."""

import functools

import numpy as np
import pytest

from attention_jax.evaluation.time_warping import (
    start_scores,
    token_starts,
    warping_path,
    word_starts_in_tokens,
)


def all_paths(tokens, frames):
    """Every monotone path from the first of both to the last, by recursion."""

    @functools.cache
    def paths(token, frame):
        if (token, frame) == (0, 0):
            return [[(0, 0)]]
        before = [(token - 1, frame - 1), (token, frame - 1), (token - 1, frame)]
        return [
            [*path, (token, frame)]
            for place in before
            if min(place) >= 0
            for path in paths(*place)
        ]

    return paths(tokens - 1, frames - 1)


@pytest.mark.parametrize(("tokens", "frames"), [(1, 1), (1, 4), (3, 5), (4, 4), (4, 2)])
def test_the_path_is_the_cheapest_of_all(tokens, frames, numpy_rng):
    costs = numpy_rng.random((tokens, frames))
    cost = {tuple(path): sum(costs[place] for place in path) for path in all_paths(tokens, frames)}
    found = tuple(map(tuple, warping_path(costs).tolist()))
    assert found in cost and sum(costs[place] for place in found) == pytest.approx(
        min(cost.values())
    )


def test_a_token_starts_where_it_is_attended_more_than_the_one_before():
    weights = np.array([
        [0.0, 0.6, 0.3, 0.1, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.1, 0.2, 0.7, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.1, 0.4, 0.5],
    ])  # fmt: skip
    assert token_starts(weights).tolist() == [0, 3, 5]


def test_words_begin_after_spaces_or_everywhere():
    assert word_starts_in_tokens(list("two  one"), are_words=False) == [0, 5]
    assert word_starts_in_tokens(["two", "one"], are_words=True) == [0, 1]
    assert word_starts_in_tokens(["I", "a", "I"], are_words=True) == [0, 1, 2]
    assert word_starts_in_tokens([], are_words=False) == []


def test_errors_are_in_milliseconds():
    scores = start_scores([np.array([0.1, 0.5]), np.array([0.0])],
                          [np.array([0.15, 0.2]), np.array([0.02])])  # fmt: skip
    assert scores["word_start_error"] == pytest.approx(50.0)
    assert scores["word_starts_near"] == pytest.approx(200 / 3) and scores["word_starts"] == 3
    assert start_scores([], []) == {}
