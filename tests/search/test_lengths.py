"""Length limits and penalties against their definitions."""

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.search.config import SearchConfig
from attention_jax.search.lengths import length_limits, length_penalty


def test_length_limits_follow_the_source():
    config = SearchConfig(max_length_factor=1.5, max_length_constant=2, min_length_ratio=0.5)
    shortest, longest = length_limits(config, jnp.array([0, 1, 4, 7, 100]), 20)
    np.testing.assert_array_equal(longest, [0, 3, 8, 12, 20])
    np.testing.assert_array_equal(shortest, [0, 1, 3, 4, 20])


def test_the_fewest_tokens_need_not_follow_the_source():
    """EOS may be the token after so many others, and always the last that there is room for."""
    config = SearchConfig(max_length_factor=1.0, max_length_constant=5, min_length_constant=8)
    shortest, longest = length_limits(config, jnp.array([0, 1, 4, 7, 100]), 20)
    np.testing.assert_array_equal(longest, [0, 6, 9, 12, 20])
    np.testing.assert_array_equal(shortest, [0, 6, 9, 9, 9])


def test_length_limits_leave_room_for_one_token():
    config = SearchConfig(max_length_factor=0.1, max_length_constant=0)
    _, longest = length_limits(config, jnp.array([1, 30]), 20)
    np.testing.assert_array_equal(longest, [1, 3])
    assert config.longest(1) == 1 and config.longest(30) == 3


@pytest.mark.parametrize("factor", [0.7, 1.1, 1.3, 1.4, 2.3, 2.999])
def test_limits_of_an_array_are_those_of_the_config(factor):
    """Whatever a multiple is rounded to: a thousandth of it is what it is on paper."""
    config = SearchConfig(max_length_factor=factor, min_length_ratio=factor)
    lengths = np.arange(1, 2001)
    shortest, longest = length_limits(config, jnp.asarray(lengths), 10_000)
    on_paper = round(1000 * factor) * lengths // 1000
    np.testing.assert_array_equal(longest, on_paper + config.max_length_constant)
    np.testing.assert_array_equal(longest, [config.longest(int(length)) for length in lengths])
    np.testing.assert_array_equal(shortest, np.minimum(on_paper + 1, longest))


@pytest.mark.parametrize(
    ("normalization", "length", "alpha", "expected"),
    [
        ("gnmt", 2, 0.2, 1.03131031),
        ("gnmt", 10, 0.2, 1.20112443),
        ("gnmt", 10, 0.6, 1.73286211),
        ("gnmt", 20, 1.0, 4.16666667),
        ("length", 8, 1.0, 8.0),
        ("length", 9, 0.5, 3.0),
        ("none", 9, 1.0, 1.0),
        ("length", 0, 1.0, 1.0),
    ],
)
def test_length_penalty_golden(normalization, length, alpha, expected):
    config = SearchConfig(length_normalization=normalization, length_alpha=alpha)
    np.testing.assert_allclose(length_penalty(config, jnp.array(length)), expected, rtol=1e-6)
