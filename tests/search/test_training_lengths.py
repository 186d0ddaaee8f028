"""Limits of outputs' lengths that have room for training pairs, and which pairs have none."""

import dataclasses

import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np

from attention_jax.search import SearchConfig
from attention_jax.search.lengths import length_limits
from attention_jax.search.training_lengths import (
    DEFAULT,
    Longest,
    forbidden,
    is_unusual,
    longest_of_pairs,
)

LENGTHS = hypothesis.extra.numpy.arrays(int, st.integers(1, 60), elements=st.integers(1, 300))


def test_the_default_stays_where_it_has_room():
    sources = np.arange(2, 500)
    assert longest_of_pairs(sources, 2 * sources + 10) == DEFAULT == Longest(2.0, 10)
    assert longest_of_pairs(sources, np.ones(498, int)) == DEFAULT
    assert longest_of_pairs(sources[:0], sources[:0]) == DEFAULT


def test_longer_targets_raise_the_default():
    # By hand: 40 tokens for 2, 80 for 6 are 15 for 1; 2 * 15 * 2 = 60 and 180, with room for both.
    assert longest_of_pairs(np.array([2, 6]), np.array([40, 80])) == Longest(30.0, 10)
    # 15 for 10, and 400 once: 2 * 14.1 / 11 for 1, of which 2 have 5, and 395 are left.
    sources, targets = np.array([10] * 40 + [2]), np.array([15] * 40 + [400])
    assert longest_of_pairs(sources, targets) == Longest(4.976, 391)


def test_a_thousandth_of_the_pairs_is_left_out_of_account():
    sources, targets = np.full(4000, 10), np.full(4000, 10)
    targets[:4] = 300
    assert longest_of_pairs(sources, targets) == DEFAULT
    targets[4] = 40
    longest = longest_of_pairs(sources, targets)
    assert longest.factor * 10 + longest.constant <= 40.9
    assert forbidden(longest.within(SearchConfig()), sources, targets) == (0, 4)


@hypothesis.given(LENGTHS, st.randoms())
def test_no_target_is_longer_than_what_is_found(targets, random):
    sources = np.array([random.randint(1, 40) for _ in targets])
    longest = longest_of_pairs(sources, targets)
    assert longest.factor >= DEFAULT.factor and longest.constant >= DEFAULT.constant
    assert forbidden(longest.within(SearchConfig()), sources, targets) == (0, 0)


@hypothesis.given(LENGTHS, st.randoms(), st.floats(0, 3), st.floats(0.1, 3), st.integers(0, 9))
def test_forbidden_are_the_lengths_that_no_search_finds(targets, random, least, factor, constant):
    sources = np.array([random.randint(1, 40) for _ in targets])
    config = SearchConfig(
        min_length_ratio=round(least, 3), max_length_factor=round(factor, 3),
        max_length_constant=constant, min_length_constant=constant // 2,
    )  # fmt: skip
    shortest, longest = length_limits(config, jnp.asarray(sources), 1000)
    expected = int((targets < shortest).sum()), int((targets > longest).sum())
    assert forbidden(config, sources, targets) == expected


def test_within_changes_nothing_else():
    config = SearchConfig(method="greedy", min_length_ratio=0.25)
    found = Longest(3.0, 40).within(config)
    assert found == dataclasses.replace(config, max_length_factor=3.0, max_length_constant=40)


def test_more_than_one_in_a_thousand_is_unusual():
    assert [is_unusual(1, 999), is_unusual(1, 1000), is_unusual(2, 1999)] == [True, False, True]
