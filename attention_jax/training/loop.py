"""The training of one run, from its first step or from wherever it was cut off.

The same config in the same directory continues to the same bits, because a checkpoint holds all
that later steps depend on, and the randomness of a step is `fold_in(rng, step)`.
"""

import contextlib
import dataclasses
import hashlib
import math
import time
from collections.abc import Mapping
from typing import Any

import jax

from attention_jax.errors import ConfigError
from attention_jax.training import processes
from attention_jax.training.assembly import Assembly, assemble
from attention_jax.training.checkpoints.checkpoint import Checkpoint, Checkpointer
from attention_jax.training.checkpoints.origin import check_origin, origin
from attention_jax.training.config import ExperimentConfig, TrainingConfig, to_plain
from attention_jax.training.length_limits import record_limits
from attention_jax.training.measuring.watch import Watch, settled_step
from attention_jax.training.preemption import Preemption
from attention_jax.training.reporting.meter import Meter
from attention_jax.training.reporting.profiling import ProfileSteps
from attention_jax.training.reporting.run_log import RunLog
from attention_jax.training.run_directory import RunDirectory
from attention_jax.training.run_texts import check_texts, record_texts
from attention_jax.training.sharding import fetch
from attention_jax.training.sharding.fits import check_fits
from attention_jax.training.sharding.held import describe_held
from attention_jax.training.updates.averaging import CheckpointAverage
from attention_jax.training.updates.state import TrainState
from attention_jax.types import Array, Params


def train(
    config: ExperimentConfig,
    directory: RunDirectory,
    checkpointer: Checkpointer,
    preemption: Preemption,
    profiled: ProfileSteps | None = None,
) -> None:
    """Trains to the end; the checkpoints hold the result.

    Args:
      config: The experiment.
      directory: Where it is, claimed by the caller.
      checkpointer: Its checkpoints. If there are any, training continues after the newest.
      preemption: Asked after every step whether to save and leave; before the first one is done,
        there is nothing to save.
      profiled: The steps of which the profiler writes a trace, if any.

    Raises:
      UserError: If the data, the config or the directory is at fault, or the loss diverges.
      Preempted: If the process was told to stop; the state is saved then.
    """
    settings = config.training
    init_rng, step_rng = jax.random.split(jax.random.key(config.seed))
    with preemption.at_once():  # texts are aligned, for one, and nothing is to be saved yet
        parts = assemble(config, directory, begins=not processes.from_first(checkpointer.steps))
        _begin(parts, directory)
        state, done, watch = _start(parts, checkpointer, config, directory, init_rng)
    began, held = time.monotonic(), describe_held(parts.strategy, state)
    started = began - watch.seconds

    meter, settled = _meter(settings, state), settled_step(config)
    with RunLog(
        directory, settings, parts, step=done, time_use=watch.time_use, profiled=profiled
    ) as log:
        _record(config, directory, held)
        log.opening(count_parameters(state.params), held, seconds=watch.seconds)

        # ---- Loop -------------------------------------------------------------------------------
        for step in range(done + 1, parts.total_steps + 1):
            if watch.stopped:
                break
            batch = log.timed("data", next, parts.batches)
            batch = parts.strategy.place(batch, settings.accumulate_steps)
            with preemption.at_once() if step == done + 1 else contextlib.nullcontext():  # compiles
                state, metrics = log.profiled(step, parts.train_step, state, batch, step_rng)
            log.training(meter.add(step, metrics))

            told_to_stop = preemption.requested(step)
            last, metric = step == parts.total_steps, None
            if last or _is_multiple(step, settings.evaluate_every_steps):
                log.training(meter.flush(end=last))
                values = log.timed("evaluation", parts.validation, _evaluated(state))
                counts = last or step > settled
                metric = values.get(settings.metric, math.nan) if counts else None
                watch = watch.after(metric, step, settings)
                state = _with_plateau(state, parts, values)
                log.validation(step, values, best=watch.best_step == step)

            is_due = last or _is_due(step, watch, settings)
            if is_due or told_to_stop:
                log.training(meter.flush(end=last or watch.stopped))
                watch = dataclasses.replace(
                    watch, seconds=time.monotonic() - started, time_use=log.time_use()
                )
                log.timed(
                    "save", checkpointer.save, step, state,
                    data=parts.batches.state(), config=origin(config, directory), metric=metric,
                    host=dataclasses.asdict(watch), interim=not _counts(step, last, watch, settings)
                )  # fmt: skip
                directory.add_to_run(saving=checkpointer.cost.describe(time.monotonic() - began))
            if told_to_stop:
                log.timed("save", checkpointer.wait)
                log.say(f"told to stop: step {step} is saved, the same command continues")
                preemption.leave()
        if watch.stopped:
            log.say(f"stopped early: no better {settings.metric} since step {watch.best_step}")
        log.timed("save", checkpointer.wait)
        directory.add_to_run(time_use=log.closing(), parameters=hash_parameters(state.params))


def hash_parameters(params: Params) -> str:
    """Returns a hash of every bit of the parameters, equal only for equal trainings."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(fetch(params)):
        digest.update(jax.tree_util.keystr(path).encode())
        digest.update(leaf.tobytes())
    return digest.hexdigest()


def count_parameters(params: Params) -> int:
    """Returns how many numbers the parameters hold."""
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def _begin(parts: Assembly, directory: RunDirectory) -> None:
    """Refuses what could not end well, while nothing has been computed or written."""
    check_fits(parts.like)
    check_texts(directory, parts.task)
    record_texts(directory, parts.task)
    record_limits(directory, parts.limits)


def _record(config: ExperimentConfig, directory: RunDirectory, held: Mapping[str, Any]) -> None:
    """Writes what is trained, now that nothing is refused any more."""
    directory.write_config(to_plain(config))
    directory.add_to_run(finished=None, sharding=held)


def _start(
    parts: Assembly,
    checkpointer: Checkpointer,
    config: ExperimentConfig,
    directory: RunDirectory,
    rng: Array,
) -> tuple[TrainState, int, Watch]:
    """Starts, or resumes from the newest good checkpoint; where there are some, one must be.

    Returns:
      (state, updates made, what is remembered).
    """
    checkpoint = checkpointer.restore(parts.like)
    if checkpoint is None:
        return parts.start(rng), 0, Watch()
    _check_continues(checkpointer, checkpoint, config, directory, parts.total_steps)
    watch = Watch(**checkpoint.host).resumed(config.training)
    parts.batches.restore(checkpoint.data)
    if checkpoint.step < parts.total_steps and not _counts(
        checkpoint.step, False, watch, config.training
    ):
        checkpointer.make_interim(checkpoint.step)  # the end of a shorter training
    return checkpoint.state, checkpoint.step, watch


def _check_continues(
    checkpointer: Checkpointer,
    checkpoint: Checkpoint,
    config: ExperimentConfig,
    directory: RunDirectory,
    total_steps: int,
) -> None:
    """Refuses checkpoints of something else, and to call a training by a length it is beyond."""
    check_origin(checkpointer, checkpoint, config, directory)
    if checkpoint.step > total_steps:
        field = "num_epochs" if config.training.num_epochs else "num_steps"
        raise ConfigError(
            f"config.training.{field}: expected at least the {checkpoint.step} steps that "
            f"{directory.path} was trained for, found {total_steps}; choose another --workdir"
        )


def _meter(settings: TrainingConfig, state: TrainState) -> Meter:
    return Meter(
        settings.log_every_steps,
        max_consecutive_skipped=settings.max_consecutive_nonfinite,
        skipped_in_a_row=int(state.skipped_in_a_row),
    )


def _is_multiple(step: int, every: int) -> bool:
    return bool(every) and step % every == 0


def _is_due(step: int, watch: Watch, settings: TrainingConfig) -> bool:
    """Returns whether a step is saved even if nobody interrupts the training."""
    wanted = watch.stopped or watch.best_step == step
    return wanted or _is_multiple(step, settings.checkpoint_every_steps)


def _counts(step: int, last: bool, watch: Watch, settings: TrainingConfig) -> bool:
    """Returns whether a step that is saved is one of the newest to be kept, and to be averaged.

    Where they are averaged, one that only validated best is not: the mean would depend on luck.
    """
    if last or _is_multiple(step, settings.checkpoint_every_steps):
        return True
    is_averaged = isinstance(settings.averaging, CheckpointAverage)
    return _is_due(step, watch, settings) and not is_averaged


def _with_plateau(
    state: TrainState, parts: Assembly, values: Mapping[str, float]
) -> TrainState:
    """Lets the schedule see a validation."""
    plateau = parts.schedule.observe(state.plateau, values)
    plateau = jax.tree.map(
        lambda leaf, like: jax.device_put(leaf, like.sharding), plateau, parts.like.plateau
    )
    return dataclasses.replace(state, plateau=plateau)


def _evaluated(state: TrainState) -> Params:
    """Returns what validation measures: the moving average, or else the last parameters.

    The mean of checkpoints is for the end of training only; see `CheckpointAverage`.
    """
    return state.params if state.average is None else state.average
