"""Bad numbers that must be skipped, and changes of config that must or must not matter.

A scenario yields for each of its trials what was lost, or None.
"""

import contextlib
import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.experiment import run_experiment
from attention_jax.objectives import Objective
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.runs.config import ExperimentConfig
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.assembly import assemble
from experiments.benchmarks.reliability.bench import (
    STEPS,
    Bench,
    config_of,
    content,
    difference,
    parameters,
)

Trials = Iterator[str | None]


def bad_gradient(bench: Bench) -> Trials:
    """A loss of NaN, and gradients that are infinite: the update is skipped and told."""
    for factor in (np.nan,) if bench.is_short else (np.nan, np.inf, 1e38):
        problem = _with_factor(bench, factor, "1 not finite")
        yield problem and f"loss times {factor}: {problem}"


def loss_spike(bench: Bench) -> Trials:
    """A loss a hundred times too large: the update is skipped and told."""
    for factor in (100.0,) if bench.is_short else (100.0, 1e4):
        problem = _with_factor(bench, factor, "1 with a gradient of norm")
        yield problem and f"loss times {factor:g}: {problem}"


def other_config(bench: Bench) -> Trials:
    """Another batch size or model on resume: one line, code 2, nothing changed."""
    changes = ["data.batch_size=8", "model.decoder.hidden_dim=12"]
    changes += [] if bench.is_short else ["seed=3", "optimizer.learning_rate=0.02"]
    for change in changes:
        run = bench.copy(bench.cut_off, "other_config")
        before = content(run)
        ended = bench.train(run, f"--config.{change}")
        problem = ended.unless(2, "holds a run with another config", change.split("=")[0])
        if not problem and not ended.is_one_line:
            problem = f"expected one line, found {ended.output[-300:]!r}"
        if not problem and content(run) != before:
            problem = "files have changed"
        yield problem and f"{change}: {problem}"


def same_seed(bench: Bench) -> Trials:
    """The same command in another directory gives the same bits, and another seed others."""
    workdir = bench.workdir("same_seed")
    config = config_of(bench.uninterrupted)
    _train(config, workdir)
    yield difference(workdir, bench.uninterrupted)
    workdir = bench.workdir("other_seed")
    _train(dataclasses.replace(_without_evaluation(config), seed=1), workdir)
    same = parameters(workdir) == parameters(bench.uninterrupted)
    yield "the seed makes no difference" if same else None


def intervals(bench: Bench) -> Trials:
    """How often training is logged, validated and saved does not change it."""
    config = _without_evaluation(config_of(bench.uninterrupted))
    names = ("log_every_steps", "evaluate_every_steps", "checkpoint_every_steps")
    for values in ((1, 0, 0),) if bench.is_short else ((1, 0, 0), (7, 4, 50), (60, 60, 3)):
        training = dataclasses.replace(config.training, **dict(zip(names, values, strict=True)))
        workdir = bench.workdir("intervals")
        _train(dataclasses.replace(config, training=training), workdir)
        same = parameters(workdir) == parameters(bench.uninterrupted)
        yield None if same else f"other parameters with {dict(zip(names, values, strict=True))}"


def _with_factor(bench: Bench, factor: float, words: str) -> str | None:
    """Trains one more step with a multiplied loss; returns what that step has wrongly changed."""
    run = bench.copy(bench.uninterrupted, "bad_step")
    config = _without_evaluation(config_of(run))
    before = _last_state(config, run)
    training = dataclasses.replace(config.training, num_steps=STEPS + 1)
    with mock.patch.object(Objective, "__call__", _multiplied(Objective.__call__, factor)):
        said = _train(dataclasses.replace(config, training=training), run)
    after = _last_state(config, run)
    if int(after.step) != STEPS + 1 or int(after.skipped) != 1:
        return f"{after.skipped} updates were skipped up to step {after.step}"
    # Whatever a skipped update must leave alone, to the bit.
    for name in ("params", "optimizer", "average", "norms"):
        same = jax.tree.map(_equal, getattr(before, name), getattr(after, name))
        if not all(jax.tree.leaves(same)):
            return f"{name} has changed"
    return None if words in said else f"did not say {words!r}"


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    return np.array_equal(one, other, equal_nan=True)


def _multiplied(original: Any, factor: float) -> Any:
    def objective(self: Objective, output: Any, batch: Any, step: Any = None, *more: Any):
        loss, metrics = original(self, output, batch, step, *more)
        if step is not None:  # a training step, not an evaluation
            loss = loss * jnp.where(step == STEPS, jnp.float32(factor), 1.0)
        return loss, metrics

    return objective


def _train(config: ExperimentConfig, workdir: Path) -> str:
    """Trains in this process, and returns what was said."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        run_experiment(config, workdir)
    return said.getvalue()


def _last_state(config: ExperimentConfig, run: Path) -> Any:
    like = assemble(config, RunDirectory(run)).like
    with Checkpointer(run / "checkpoints", read_only=True) as checkpointer:
        checkpoint = checkpointer.restore(like)
    assert checkpoint is not None
    return jax.device_get(checkpoint.state)


def _without_evaluation(config: ExperimentConfig) -> ExperimentConfig:
    return dataclasses.replace(
        config, evaluation=dataclasses.replace(config.evaluation, splits=())
    )
