"""Gradients that stand out: what counts as one, and what is left of the update."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.objectives import Objective, nll
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.assembly import assemble
from attention_jax.training.reporting.run_log import _skipped
from attention_jax.updates.averaging import MovingAverage
from attention_jax.updates.decays import Constant
from attention_jax.updates.gradient_spikes import add_norm, is_spike, start_norms
from attention_jax.updates.optimizers import Adam, build_optimizer
from attention_jax.updates.schedules import build_schedule
from attention_jax.updates.state import start_state
from attention_jax.updates.step import make_train_step
from tests.training.linear_model import LinearModel, random_batch
from tests.training.tiny import tiny_config


def norms_after(values, ratio=10.0):
    norms = start_norms(ratio)
    for made, value in enumerate(values):
        norms = add_norm(norms, jnp.float32(value), jnp.int32(made))
    return norms


@pytest.mark.parametrize("count", [16, 17, 64, 100])
def test_a_spike_is_far_above_the_median_of_the_last_64(count, numpy_rng):
    values = np.exp(numpy_rng.normal(size=count)).astype(np.float32)
    median = np.median(values[-64:].astype(np.float64))
    norms = norms_after(values)
    assert not is_spike(norms, jnp.float32(9.99 * median), 10.0)
    assert is_spike(norms, jnp.float32(10.01 * median), 10.0)


def test_the_first_updates_are_never_spikes():
    assert not is_spike(norms_after([1.0] * 15), jnp.float32(1e6), 10.0)
    assert is_spike(norms_after([1.0] * 16), jnp.float32(1e6), 10.0)


def test_nothing_is_kept_where_nothing_is_skipped():
    assert start_norms(0.0) is None
    assert not is_spike(None, jnp.float32(1e30), 0.0)
    assert add_norm(None, jnp.float32(1.0), jnp.int32(3)) is None


class Scaled(nll.Term):
    """The loss times a number of the batch."""

    def total(self, output, batch):
        return super().total(output, batch) * batch["scale"]


@functools.cache
def trainer(ratio):
    optimizer, averaging = Adam(learning_rate=0.01), MovingAverage()
    transformation = build_optimizer(optimizer)
    model, objective = LinearModel(), Objective({"nll": Scaled()})
    schedule = build_schedule(Constant(), 0.01, steps_per_epoch=10, total_steps=100)
    step = make_train_step(
        model, objective, transformation, schedule, averaging=averaging, max_gradient_ratio=ratio
    )
    start = start_state(
        model, transformation, jax.random.key(0), averaging=averaging, max_gradient_ratio=ratio
    )
    return jax.jit(step), start


def run(ratio, scales, state=None):
    step, start = trainer(ratio)
    state = start if state is None else state
    metrics = {}
    for scale in scales:
        batch = {**random_batch(), "scale": np.float32(scale)}
        state, metrics = step(state, batch, jax.random.key(1))
    return state, metrics


def test_an_update_that_stands_out_changes_no_bit():
    before, _ = run(20.0, [1.0] * 20)
    state, metrics = run(20.0, [100.0, 100.0], before)
    for name in ("params", "optimizer", "average", "norms"):
        jax.tree.map(np.testing.assert_array_equal, getattr(state, name), getattr(before, name))
    assert (state.step, state.skipped, state.skipped_in_a_row) == (22, 2, 2)
    assert metrics["skipped"] == (1.0, 1.0) and metrics["gradient_norm"][1] == 0.0
    norm, count = metrics["skipped_norm"]
    assert count == 1.0 and norm > 20.0 * np.nanmedian(state.norms)
    after, metrics = run(20.0, [1.0], state)
    assert (after.skipped, after.skipped_in_a_row) == (2, 0)
    assert metrics["skipped_norm"] == (0.0, 0.0) and metrics["skipped"][0] == 0.0
    assert np.isfinite(after.norms[:21]).all()  # those of skipped updates have left no gap


def test_a_skipped_update_is_not_counted_as_made():
    """Neither in the warm-up of the average nor in the ring of norms."""
    straight, _ = run(20.0, [1.0] * 21)
    skipping, _ = run(20.0, [1.0] * 20 + [100.0, np.nan, 1.0])
    assert (straight.skipped, skipping.skipped) == (0, 2)
    for name in ("params", "optimizer", "average", "norms"):
        jax.tree.map(
            np.testing.assert_array_equal, getattr(skipping, name), getattr(straight, name)
        )


def test_what_does_not_stand_out_is_trained_on():
    state, metrics = run(20.0, [1.0] * 20 + [10.0])
    assert state.skipped == 0 and metrics["gradient_norm"][1] == 1.0
    unguarded, metrics = run(0.0, [1.0] * 20 + [100.0])
    assert unguarded.skipped == 0 and unguarded.norms is None and "skipped_norm" not in metrics


def test_config_decides(tmp_path):
    config = tiny_config(max_gradient_ratio=5.0)
    assert assemble(config, RunDirectory(tmp_path / "run")).like.norms.shape == (64,)
    training = dataclasses.replace(config.training, max_gradient_ratio=0.0)
    config = dataclasses.replace(config, training=training)
    assert assemble(config, RunDirectory(tmp_path / "run")).like.norms is None
    with pytest.raises(ValueError, match="max_gradient_ratio: expected more than 1, or 0"):
        dataclasses.replace(training, max_gradient_ratio=0.5)


def test_the_ratio_of_the_config_reaches_the_step(tmp_path):
    parts = assemble(tiny_config(max_gradient_ratio=1e3), RunDirectory(tmp_path / "run"))
    state = parts.start(jax.random.key(0))
    for _ in range(18):  # from the 17th on a gradient can stand out
        batch = parts.strategy.place(next(parts.batches), 1)
        state, _ = parts.train_step(state, batch, jax.random.key(1))
    assert (state.step, state.skipped) == (18, 0)


def test_skipped_updates_are_told_in_one_line():
    assert not list(_skipped(50, {"skipped": (0.0, 50.0), "skipped_norm": (0.0, 0.0)}))
    (line,) = _skipped(50, {"skipped": (1.0, 50.0)})
    assert line == "warning: 1 of the last 50 updates up to step 50 was skipped: 1 not finite"
    (line,) = _skipped(50, {"skipped": (3.0, 50.0), "skipped_norm": (600.0, 2.0)})
    assert line.endswith("were skipped: 1 not finite, 2 with a gradient of norm 300 that stood out")
