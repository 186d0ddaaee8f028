"""Donated buffers: a step leaves one copy of the state, whatever the strategy."""

import jax
import pytest

from attention_jax.devices import build_strategy
from attention_jax.devices.config import ShardingConfig
from attention_jax.objectives import build_objective
from attention_jax.updates.averaging import MovingAverage
from attention_jax.updates.decays import Constant
from attention_jax.updates.optimizers import Adam, build_optimizer
from attention_jax.updates.schedules import build_schedule
from attention_jax.updates.state import start_state
from attention_jax.updates.step import make_train_step
from tests.training.linear_model import LinearModel, random_batch


@pytest.mark.parametrize("strategy", ["jit", "shard_map"])
def test_parameters_optimiser_and_average_take_the_memory_of_the_last_ones(strategy):
    model, averaging = LinearModel(), MovingAverage()
    optimizer = build_optimizer(Adam())
    schedule = build_schedule(Constant(), 1e-3, steps_per_epoch=10, total_steps=10)
    step = make_train_step(
        model, build_objective({"nll": {}}), optimizer, schedule, averaging=averaging
    )
    chosen = build_strategy(ShardingConfig(strategy=strategy), jax.devices()[:1])
    state = start_state(model, optimizer, jax.random.key(0), averaging=averaging)
    shardings = chosen.shardings(state, model.parameter_axes())
    state = jax.device_put(state, shardings)
    batch = chosen.place(random_batch())
    arguments = (state, batch, jax.random.key(1))
    compiled = chosen.compile_train_step(step, shardings)
    memory = compiled.lower(*arguments).compile().memory_analysis()
    assert memory.alias_size_in_bytes >= sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    new, _ = compiled(*arguments)
    for old, leaf in zip(jax.tree.leaves(state), jax.tree.leaves(new), strict=True):
        assert old.is_deleted() and not leaf.is_deleted()
