"""Frozen parameters keep their bits, for as long as they are frozen and no longer."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import plain, typed
from attention_jax.errors import ConfigError
from attention_jax.objectives import build_objective
from attention_jax.runs.config import TrainingConfig
from attention_jax.updates.averaging import MovingAverage
from attention_jax.updates.decays import Constant
from attention_jax.updates.freezing import Freezing
from attention_jax.updates.optimizers import SGD, Adadelta, Adam, AdamW, build_optimizer
from attention_jax.updates.schedules import build_schedule
from attention_jax.updates.state import start_state
from attention_jax.updates.step import make_train_step
from tests.training.linear_model import LinearModel, loss_and_gradient, random_batch

MODEL, OBJECTIVE, AVERAGING = LinearModel(), build_objective({"nll": {}}), MovingAverage(decay=0.5)
OPTIMIZERS = {
    "adam": Adam(learning_rate=0.1),
    "adamw": AdamW(learning_rate=0.1, weight_decay=0.5),
    "adadelta": Adadelta(),
    "momentum": SGD(learning_rate=0.1, momentum=0.9),
}


@functools.cache
def states(freezing, optimizer="adamw", parts=1, steps=6):
    """Returns the states before the first step and after each."""
    transformation = build_optimizer(OPTIMIZERS[optimizer])
    rate = OPTIMIZERS[optimizer].learning_rate
    schedule = build_schedule(Constant(), rate, steps_per_epoch=9, total_steps=9)
    step = jax.jit(
        make_train_step(
            MODEL,
            OBJECTIVE,
            transformation,
            schedule,
            averaging=AVERAGING,
            accumulate_steps=parts,
            freezing=freezing,
        )
    )
    found = [start_state(MODEL, transformation, jax.random.key(0), averaging=AVERAGING)]
    for seed in range(steps):
        found.append(step(found[-1], random_batch(seed), jax.random.key(1))[0])
    return found


def moved(before, after):
    """Returns the paths of the leaves of which a bit is another."""
    pairs = zip(jax.tree.leaves_with_path(before), jax.tree.leaves(after), strict=True)
    return {
        jax.tree_util.keystr(path, simple=True, separator="/")
        for (path, one), other in pairs
        if np.asarray(one).tobytes() != np.asarray(other).tobytes()
    }


ALL = {"decoder/target", "decoder/bias", "output", "source"}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_frozen_parameters_keep_their_bits_for_the_given_steps(optimizer):
    freezing = Freezing(("^output$", "target"), start_steps=2, num_steps=3)
    found = states(freezing, optimizer)
    for step in range(6):
        is_frozen = 2 <= step < 5
        expected = ALL - {"output", "decoder/target"} if is_frozen else ALL
        assert moved(found[step].params, found[step + 1].params) == expected
    free = states(Freezing(), optimizer)
    for step in (1, 2):  # nothing is different until they are frozen
        assert not moved(found[step].params, free[step].params)


@pytest.mark.parametrize("parts", [1, 2])
def test_without_an_end_they_are_frozen_for_good_and_so_is_their_average(parts):
    found = states(Freezing(("decoder/",)), parts=parts, steps=3)
    for name in ("params", "average"):
        kept = moved(getattr(found[0], name), getattr(found[-1], name))
        assert kept == {"output", "source"}


def test_frozen_gradients_have_no_part_in_the_norm():
    transformation = build_optimizer(SGD(learning_rate=0.5, clip_norm=0.0))
    schedule = build_schedule(Constant(), 0.5, steps_per_epoch=9, total_steps=9)
    step = make_train_step(
        MODEL, OBJECTIVE, transformation, schedule, averaging=AVERAGING,
        freezing=Freezing(("source", "output")),
    )  # fmt: skip
    batch = random_batch()
    state = start_state(MODEL, transformation, jax.random.key(0), averaging=AVERAGING)
    _, gradient = loss_and_gradient(state.params, batch, 1 / batch["target_mask"].sum())
    new, metrics = jax.jit(step)(state, batch, jax.random.key(1))
    norm = np.sqrt(sum((leaf**2).sum() for leaf in gradient["decoder"].values()))
    np.testing.assert_allclose(metrics["gradient_norm"][0], norm, rtol=1e-5)
    for name, leaf in gradient["decoder"].items():
        expected = np.asarray(state.params["decoder"][name]) - 0.5 * leaf
        np.testing.assert_allclose(new.params["decoder"][name], expected, rtol=1e-5, atol=1e-6)


def test_a_pattern_that_is_found_nowhere_is_one_line():
    params = jax.eval_shape(MODEL.init, jax.random.key(0))
    Freezing(("decoder", "e$")).check(params)
    with pytest.raises(ConfigError) as error:
        Freezing(("decoder", "decodr/bias")).check(params)
    assert str(error.value) == (
        "config.training.freezing.parameters[1]: expected a pattern that is found in a "
        "parameter's path, such as decoder/bias, found 'decodr/bias'"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parameters": ("a(",)}, r"parameters\[0\]: expected a regular expression, found 'a\('"),
        ({"start_steps": 3}, "start_steps: expected parameters beside it, found 3"),
        ({"num_steps": 3}, "num_steps: expected parameters beside it, found 3"),
        ({"parameters": "decoder"}, "parameters: expected a sequence, found 'decoder'"),
    ],
)
def test_mistakes_are_named(fields, message):
    with pytest.raises(ConfigError, match=f"config.training.freezing.{message}") as error:
        typed(TrainingConfig, {"num_steps": 1, "freezing": fields}, "config.training")
    assert "\n" not in str(error.value)


def test_config_reads_back():
    config = typed(TrainingConfig, {"num_steps": 1, "freezing": {"parameters": ("a", "b")}})
    assert config.freezing == Freezing(("a", "b"))
    assert typed(TrainingConfig, plain(config)) == config


def test_frozen_steps_are_counted_from_the_start():
    freezing, endless = Freezing(("a",), start_steps=2, num_steps=3), Freezing(("a",), 2)
    found = [(bool(freezing.is_on(step)), bool(endless.is_on(step))) for step in jnp.arange(6)]
    assert found == [(False, False)] * 2 + [(True, True)] * 3 + [(False, True)]
