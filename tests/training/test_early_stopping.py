"""Watching a validation metric: the best step, and patience."""

import dataclasses
import math

import pytest

from attention_jax.data.tasks import pronounce, translate
from attention_jax.errors import ConfigError
from attention_jax.objectives.coverage_loss import Term as CoverageLoss
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.runs.config import TrainingConfig
from attention_jax.training.early_stopping import EarlyStopping, check_mode, settled_step
from attention_jax.updates.freezing import Freezing
from tests.training.tiny import tiny_config


def _observe(values, **settings) -> EarlyStopping:
    config = TrainingConfig(num_steps=1, **settings)
    stopping = EarlyStopping()
    for step, value in enumerate(values, start=1):
        stopping = stopping.after(value, step, config)
    return stopping


@pytest.mark.parametrize(("mode", "best_step"), [("min", 2), ("max", 3)])
def test_after_keeps_the_best(mode, best_step):
    stopping = _observe([3.0, 1.0, 4.0, 2.0], mode=mode)
    assert (stopping.best_step, stopping.stopped) == (best_step, False)


def test_after_stops_when_patience_is_exhausted():
    assert not _observe([1.0, 2.0, 2.0], patience=3).stopped
    assert _observe([1.0, 2.0, 2.0, 2.0], patience=3).stopped
    assert not _observe([1.0, 2.0, 2.0, 0.5, 2.0], patience=3).stopped


def test_a_training_that_was_stopped_goes_on_with_more_patience():
    stopping = _observe([1.0, 2.0, 2.0, 2.0], patience=3)
    assert stopping.stopped and stopping.resumed(TrainingConfig(num_steps=1, patience=3)).stopped
    for patience in (0, 4):
        assert not stopping.resumed(TrainingConfig(num_steps=1, patience=patience)).stopped


def test_after_moves_to_an_equal_value_but_loses_patience():
    stopping = _observe([1.0, 1.0, 1.0], patience=2)
    assert (stopping.best_step, stopping.waited, stopping.stopped) == (3, 2, True)


def test_after_takes_nan_for_no_improvement():
    stopping = _observe([math.nan, 2.0, math.nan])
    assert (stopping.best, stopping.best_step, stopping.waited) == (2.0, 2, 1)
    assert _observe([math.nan, math.nan], patience=2).stopped


@pytest.mark.parametrize(("value", "is_best"), [(0.5, True), (1.0, True), (2.0, False)])
def test_the_end_may_be_best_but_leaves_the_rest_as_it_was(value, is_best):
    config = TrainingConfig(num_steps=1, patience=2)
    stopping = _observe([1.0, 2.0], patience=2)
    ended = stopping.ended(value, config)
    assert ended.is_best(3) == is_best
    assert dataclasses.replace(ended, ends_best=False) == stopping == ended.resumed(config)


def test_an_end_that_is_no_number_is_not_best():
    assert not EarlyStopping().ended(math.nan, TrainingConfig(num_steps=1)).is_best(3)


METRICS = (*translate.TASK.metrics, *pronounce.TASK.metrics)


@pytest.mark.parametrize(("metric", "mode"), [("bleu", "max"), ("nll", "min"), ("any", "max")])
def test_metrics_are_looked_for_where_they_are_good(metric, mode):
    check_mode(metric, mode, "config.training.mode", METRICS)


@pytest.mark.parametrize(
    ("metric", "found", "expected"),
    [("bleu", "min", "'max' .* the higher"), ("wer", "max", "'min' .* the lower")],
)
def test_the_worst_value_is_not_looked_for(metric, found, expected):
    with pytest.raises(ConfigError, match=f"training.mode: expected {expected} .*'{found}'"):
        check_mode(metric, found, "config.training.mode", METRICS)


def test_steps_count_when_everything_is_switched_on_and_released():
    config = tiny_config()
    assert settled_step(config) == 0
    late = CoverageLoss(schedule=WeightSchedule(start_steps=300))
    objectives = {**config.objectives, "coverage_loss": late}
    with_objective = dataclasses.replace(config, objectives=objectives)
    assert settled_step(with_objective) == 300
    freezing = Freezing(parameters=("decoder",), start_steps=100, num_steps=250)
    training = dataclasses.replace(config.training, freezing=freezing)
    assert settled_step(dataclasses.replace(with_objective, training=training)) == 350
