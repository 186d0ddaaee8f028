"""Data parallelism: eight simulated devices compute what one computes."""

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from attention_jax.objectives import add_pairs, build_objective
from attention_jax.training.averaging import MovingAverage
from attention_jax.training.optimizers import Adam, build_optimizer
from attention_jax.training.schedules import Constant, build_schedule
from attention_jax.training.sharding import (
    jit_eval_step,
    jit_train_step,
    make_mesh,
    pad_rows,
    replicated,
    shard_batch,
    state_shardings,
)
from attention_jax.training.state import start_state
from attention_jax.training.step import make_eval_step, make_train_step
from tests.training.linear_model import LinearModel, random_batch


def train(devices, accumulate_steps=1, steps=3):
    """Trains on a mesh and returns the summaries of training and evaluation, and parameters."""
    model, objective = LinearModel(dropout=0.2), build_objective({"nll": {"label_smoothing": 0.1}})
    optimizer, averaging = build_optimizer(Adam(learning_rate=0.1)), MovingAverage()
    schedule = build_schedule(Constant(), 0.1, steps_per_epoch=1, total_steps=steps)
    mesh = make_mesh(jax.devices()[:devices])

    def start(rng):
        return start_state(model, optimizer, rng, averaging=averaging)

    rng = jax.random.key(0)
    shardings = state_shardings(jax.eval_shape(start, rng), mesh)
    state = jax.jit(start, out_shardings=shardings)(rng)
    train_step = make_train_step(
        model,
        objective,
        optimizer,
        schedule,
        averaging=averaging,
        accumulate_steps=accumulate_steps,
    )
    train_step = jit_train_step(train_step, mesh, shardings)
    eval_step = jit_eval_step(make_eval_step(model, objective), mesh, shardings)
    summaries = []
    for seed in range(steps):
        batch = shard_batch(random_batch(seed, rows=32, filler=5), mesh)
        assert len(batch["source"].sharding.device_set) == devices
        assert batch["source"].addressable_shards[0].data.shape[0] == 32 // devices
        state, metrics = train_step(state, batch, rng)
        summaries.append(objective.summary(add_pairs([metrics])))
    assert train_step._cache_size() == 1
    summaries.append(objective.summary(add_pairs([eval_step(state.average, batch)])))
    assert all(leaf.sharding == replicated(mesh) for leaf in jax.tree.leaves(state))
    for summary in summaries:  # counts tokens that tie, which rounding may decide
        del summary["accuracy"]
    return [summaries, jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), state.params)]


@pytest.fixture(scope="module")
def on_eight_devices(repository):
    program = (
        "import json; from tests.training.test_sharding import train; "
        "print(json.dumps([[train(n, accumulate_steps=k) for n in (8, 1)] for k in (1, 2)]))"
    )
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        cwd=repository,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_close(run, expected):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6), run, expected)


@pytest.mark.parametrize("accumulate_steps", [1, 2])
def test_eight_devices_compute_what_one_computes(on_eight_devices, accumulate_steps):
    eight, one = on_eight_devices[accumulate_steps - 1]
    assert_close(eight, one)


def test_pad_rows_adds_rows_that_count_nowhere():
    batch = random_batch(rows=5)
    padded = pad_rows(batch, 4)
    for name, array in padded.items():
        assert array.shape == (8, *batch[name].shape[1:])
        assert array.dtype == batch[name].dtype
        np.testing.assert_array_equal(array[:5], batch[name])
    assert not padded["source_mask"][5:].any() and not padded["target_mask"][5:].any()
    np.testing.assert_array_equal(padded["index"][5:], -1)
    objective = build_objective({"nll": {}})
    eval_step = make_eval_step(LinearModel(), objective)
    params = LinearModel().init(jax.random.key(0))
    summaries = [objective.summary(add_pairs([eval_step(params, b)])) for b in (batch, padded)]
    assert_close(*summaries)


def test_pad_rows_leaves_whole_batches_alone():
    batch = random_batch(rows=8)
    assert all(pad_rows(batch, 4)[name] is batch[name] for name in batch)
