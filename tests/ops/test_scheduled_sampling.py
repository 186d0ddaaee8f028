"""Scheduled sampling: what is replaced, by what, and how often."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.scheduled_sampling import scheduled_inputs
from attention_jax.types import Call

CALL = Call(True, jax.random.key(0))


def certain(words, size=9):
    """The distributions that are sure of these words."""
    return jnp.where(jax.nn.one_hot(words, size) > 0, 0.0, -jnp.inf)


def test_all_words_but_the_first_are_those_of_the_step_before():
    before = jnp.asarray([[1, 5, 6, 7], [1, 8, 2, 0]])
    written = jnp.asarray([[3, 4, 5, 6], [7, 8, 3, 4]])
    found = scheduled_inputs(before, certain(written), 1.0, CALL)
    np.testing.assert_array_equal(found, [[1, 3, 4, 5], [1, 7, 8, 3]])
    np.testing.assert_array_equal(scheduled_inputs(before, certain(written), 0.0, CALL), before)


def test_as_many_are_replaced_as_the_rate_says_and_samples_follow_the_distribution():
    before = jnp.zeros((40, 251), jnp.int32)
    shares = jnp.asarray([0.0, 0.25, 0.75])
    log_probs = jnp.broadcast_to(jnp.log(shares), (*before.shape, 3))
    found = np.asarray(scheduled_inputs(before, log_probs, 0.1, CALL))[:, 1:]
    assert (found > 0).mean() == pytest.approx(0.1, abs=0.01)
    assert (found == 2).sum() / (found > 0).sum() == pytest.approx(0.75, abs=0.04)


def test_targets_without_words_are_left():
    assert scheduled_inputs(jnp.zeros((2, 0), int), jnp.zeros((2, 0, 4)), 0.5, CALL).shape == (2, 0)


def test_a_key_is_needed():
    with pytest.raises(ValueError, match="rng: expected a key, because scheduled sampling is on"):
        scheduled_inputs(jnp.zeros((1, 2), int), jnp.zeros((1, 2, 4)), 0.5, Call(True))
