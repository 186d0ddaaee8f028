"""What objectives carry from step to step: a moving baseline, in the training state."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attention_jax.configuration import typed
from attention_jax.devices import build_strategy
from attention_jax.devices.config import ShardingConfig
from attention_jax.devices.placement import placed_shapes
from attention_jax.objectives import add_pairs, build_objective
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.types import AttentionOutput, Call
from attention_jax.updates.averaging import NoAveraging
from attention_jax.updates.decays import Constant
from attention_jax.updates.schedules import build_schedule
from attention_jax.updates.state import start_state
from attention_jax.updates.step import make_train_step
from tests.simulated_devices import call_on_devices
from tests.training.linear_model import LinearModel, random_batch

OBJECTIVE = build_objective({"nll": {}, "reinforce": {"weight": 0.5, "returns": "to_go"}})
RNG = jax.random.key(3)
STRATEGIES = {"one": {}, "jit": {"data": 2}, "pmap": {"strategy": "pmap"},
              "shard_map": {"strategy": "shard_map"}}  # fmt: skip


class Sampled(LinearModel):
    """The linear model, with a log-probability of its rows, of which those of odd ids sampled."""

    def apply(self, params, batch, call=Call()):
        output = super().apply(params, batch, call)
        source = params["source"][batch["source"][:, :1], 0]  # B 1
        shape = jnp.asarray(batch["target"]).shape
        aux = {
            "sample_log_prob": jnp.broadcast_to(-jnp.square(source), shape),
            "is_sampled": jnp.broadcast_to(jnp.asarray(batch["source"])[:, :1] % 2 == 1, shape),
        }
        return dataclasses.replace(output, attention=AttentionOutput(None, None, None, aux))


class Training:
    """A training on one device or two, and its compiled step."""

    def __init__(self, case="one", parts=1):
        values, devices = STRATEGIES[case], jax.devices()[: 1 if case == "one" else 2]
        self.strategy = build_strategy(typed(ShardingConfig, values), devices)
        optimizer = optax.with_extra_args_support(optax.sgd(0.1))
        start = functools.partial(
            start_state, Sampled(), optimizer, averaging=NoAveraging(), carried=OBJECTIVE.start()
        )
        self.like = placed_shapes(start, self.strategy, Sampled().parameter_axes())
        shardings = jax.tree.map(lambda leaf: leaf.sharding, self.like)
        self.state = jax.device_put(jax.device_get(start(jax.random.key(0))), shardings)
        step = make_train_step(
            Sampled(), OBJECTIVE, optimizer,
            build_schedule(Constant(), 0.1, steps_per_epoch=1, total_steps=9),
            averaging=NoAveraging(), accumulate_steps=parts,
            exchange=self.strategy.exchange(shardings),
        )  # fmt: skip
        self.parts, self.step = parts, self.strategy.compile_train_step(step, shardings)

    def run(self, *seeds):
        """Takes a step with each batch; returns what is carried, and the last metrics."""
        for seed in seeds:
            batch = self.strategy.place(random_batch(seed), self.parts)
            self.state, metrics = self.step(self.state, batch, RNG)
        return float(self.state.carried["reinforce"]), OBJECTIVE.summary(add_pairs([metrics]))


def test_the_baseline_follows_the_batches_and_parts_of_a_batch_are_one():
    whole, parts = Training(), Training(parts=2)
    expected = 0.0
    for seed in range(3):
        carried, metrics = whole.run(seed)
        expected = 0.9 * expected + 0.1 * metrics["reinforce/log_likelihood"]
        np.testing.assert_allclose(carried, expected, rtol=1e-5)
        np.testing.assert_allclose(parts.run(seed)[0], carried, rtol=1e-5)
    assert carried < -0.2


def test_the_baseline_is_subtracted_in_the_next_step():
    training = Training()
    _, first = training.run(0)
    carried = float(training.state.carried["reinforce"])
    training.state = dataclasses.replace(training.state, params=Training().state.params)
    _, second = training.run(0)
    assert carried < 0 and second["nll"] == first["nll"]
    assert second["reinforce/squared_advantage"] < first["reinforce/squared_advantage"]


def test_a_skipped_update_leaves_it_as_it_was():
    training = Training()
    before, _ = training.run(0)
    params = jax.tree.map(lambda leaf: leaf * jnp.nan, training.state.params)
    training.state = dataclasses.replace(training.state, params=params)
    after, metrics = training.run(1)
    assert metrics["skipped"] == 1 and after == before


def test_a_training_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path):
    straight, resumed = Training(), Training()
    straight.run(0, 1)
    resumed.run(0)
    with Checkpointer(tmp_path) as checkpointer:
        checkpointer.save(1, resumed.state, data={}, config={}, host={})
    other = Training()
    other.state = Checkpointer(tmp_path).restore(other.like).state
    other.run(1)
    for found, expected in zip(
        jax.tree.leaves(other.state), jax.tree.leaves(straight.state), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def carried_by(cases):
    """What each strategy carries after two steps; called in a process with devices."""
    return {case: Training(case).run(0, 1)[0] for case in cases}


@pytest.mark.early
def test_devices_carry_what_one_does():
    found = call_on_devices(2, "tests.updates.test_carried.carried_by", list(STRATEGIES))
    assert found["one"] < -0.1
    for carried in found.values():
        np.testing.assert_allclose(carried, found["one"], rtol=1e-5)
