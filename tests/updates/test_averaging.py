"""Moving and checkpoint averages against NumPy float64."""

import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import plain, typed
from attention_jax.updates.averaging import (
    CheckpointAverage,
    MovingAverage,
    NoAveraging,
    describe_evaluated,
    evaluation_params,
    lookup,
    mean_of,
    start_average,
    update_average,
)


def trees(count, seed=0):
    draw = np.random.default_rng(seed)
    return [
        {"a": jnp.float32(draw.normal(size=3)), "b": {"c": jnp.float32(draw.normal())}}
        for _ in range(count)
    ]


def assert_close(tree, expected, **tolerance):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **tolerance), tree, expected)


@pytest.mark.parametrize("decay", [0.3, 0.9])
def test_moving_average_matches_numpy(decay):
    config = MovingAverage(decay=decay)
    start, *path = trees(6)
    average, expected = start_average(config, start), np.float64(start["a"])
    for updates, params in enumerate(path):
        average = update_average(config, average, params, jnp.int32(updates))
        d = min(decay, (1 + updates) / (10 + updates))
        expected = d * expected + (1 - d) * np.float64(params["a"])
    np.testing.assert_allclose(average["a"], expected, rtol=1e-5)


def test_early_moving_average_forgets_the_initial_values():
    config = MovingAverage(decay=0.9999)
    params = {"a": jnp.zeros(3)}
    average = {"a": jnp.full(3, 100.0)}
    for updates in range(10):
        average = update_average(config, average, params, jnp.int32(updates))
    assert average["a"].max() < 0.01


def test_moving_average_of_constant_parameters_is_constant():
    config = MovingAverage()
    (params,) = trees(1)
    average = start_average(config, params)
    for updates in range(5):
        average = update_average(config, average, params, jnp.int32(updates))
    assert_close(average, params, rtol=0)


@pytest.mark.parametrize("config", [NoAveraging(), CheckpointAverage()])
def test_no_moving_average_is_kept_where_none_is_wanted(config):
    (params,) = trees(1)
    assert start_average(config, params) is None
    assert update_average(config, None, params, jnp.int32(0)) is None


def test_mean_of_matches_numpy():
    some = trees(5)
    expected = jax.tree.map(lambda *leaves: np.mean(np.float64(leaves), axis=0), *some)
    assert_close(mean_of(iter(some)), expected, rtol=1e-6, atol=1e-7)


def test_mean_of_nothing_is_nothing():
    assert mean_of([]) is None


def test_evaluation_params_follow_the_one_field():
    params, average, *checkpoints = trees(5)
    arguments = (params, average, checkpoints)
    assert evaluation_params(NoAveraging(), *arguments) is params
    assert evaluation_params(MovingAverage(), *arguments) is average
    two = evaluation_params(CheckpointAverage(count=2), *arguments)
    assert_close(two, mean_of(checkpoints[:2]))
    many = evaluation_params(CheckpointAverage(count=9), *arguments)
    assert_close(many, mean_of(checkpoints))
    assert evaluation_params(CheckpointAverage(), params, None) is params


def test_evaluation_params_read_no_checkpoint_too_many():
    def checkpoints():
        yield from trees(2)
        raise AssertionError("a third checkpoint was read")

    evaluation_params(CheckpointAverage(count=2), trees(1)[0], None, checkpoints())


def test_evaluation_params_hold_two_checkpoints_at_a_time():
    alive, held = weakref.WeakSet(), []

    class Tree(dict):
        __hash__ = object.__hash__

    jax.tree_util.register_pytree_node(
        Tree, lambda tree: (tuple(tree.values()), tuple(tree)),
        lambda names, leaves: Tree(zip(names, leaves, strict=True)),
    )  # fmt: skip

    def checkpoints():
        for tree in trees(6):
            one = Tree(tree)
            alive.add(one)
            held.append(len(alive))
            yield one
            del one

    evaluation_params(CheckpointAverage(count=6), trees(1)[0], None, checkpoints())
    assert len(held) == 6
    assert max(held) <= 2


@pytest.mark.parametrize("cls", [NoAveraging, MovingAverage, CheckpointAverage])
def test_lookup_finds_every_averaging_by_its_name(cls):
    assert lookup(cls().name) is cls
    assert typed(cls, plain(cls())) == cls()


def test_lookup_lists_the_names():
    with pytest.raises(KeyError) as caught:
        lookup("emma")
    assert caught.value.args[0] == ["checkpoints", "ema", "none"]


@pytest.mark.parametrize(
    ("config", "is_one_checkpoint", "expected"),
    [
        (NoAveraging(), False, "step 7"),
        (MovingAverage(), True, "the moving average at step 7"),
        (CheckpointAverage(count=3), True, "step 7"),
    ],
)
def test_what_is_evaluated_is_described(config, is_one_checkpoint, expected):
    assert describe_evaluated(config, 7, is_one_checkpoint=is_one_checkpoint) == expected


def test_means_of_checkpoints_are_described():
    found = describe_evaluated(CheckpointAverage(count=3), 7, is_one_checkpoint=False)
    assert found == "the mean of the newest checkpoints, at most 3, up to step 7,"
