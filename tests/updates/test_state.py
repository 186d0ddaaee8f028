"""The state of training as a pytree."""

import jax
import numpy as np
import pytest

from attention_jax.updates.averaging import CheckpointAverage, MovingAverage, NoAveraging
from attention_jax.updates.optimizers import Adam, build_optimizer
from attention_jax.updates.state import start_state
from tests.training.linear_model import LinearModel


def start(averaging):
    optimizer = build_optimizer(Adam())
    return start_state(LinearModel(), optimizer, jax.random.key(0), averaging=averaging)


@pytest.mark.parametrize("averaging", [NoAveraging(), CheckpointAverage(), MovingAverage()])
def test_start_state_counts_from_zero_and_is_float32(averaging):
    state = start(averaging)
    assert (state.step, state.skipped, state.skipped_in_a_row) == (0, 0, 0)
    assert state.plateau.scale == 1.0
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(state)} == {"float32", "int32"}
    if isinstance(averaging, MovingAverage):
        jax.tree.map(np.testing.assert_array_equal, state.average, state.params)
    else:
        assert state.average is None


def test_start_state_has_the_shapes_of_its_evaluation():
    optimizer = build_optimizer(Adam())
    shapes = jax.eval_shape(
        lambda rng: start_state(LinearModel(), optimizer, rng, averaging=MovingAverage()),
        jax.random.key(0),
    )
    state = start(MovingAverage())
    assert jax.tree.structure(shapes) == jax.tree.structure(state)
    for shape, leaf in zip(jax.tree.leaves(shapes), jax.tree.leaves(state), strict=True):
        assert (shape.shape, shape.dtype) == (leaf.shape, leaf.dtype)


def test_same_seed_gives_the_same_state():
    jax.tree.map(np.testing.assert_array_equal, start(MovingAverage()), start(MovingAverage()))


def test_start_state_shares_no_buffer_as_all_are_donated():
    leaves = jax.tree.leaves(start(MovingAverage()))
    pointers = {leaf.unsafe_buffer_pointer() for leaf in leaves}
    assert len(pointers) == len(leaves)
