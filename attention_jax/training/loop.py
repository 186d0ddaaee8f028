"""Training loop of one run, from its first step or from wherever it was cut off.

The same config in the same directory continues to the same bits, because a checkpoint holds all
that later steps depend on, and the randomness of a step is `fold_in(rng, step)`.
"""

import contextlib
import dataclasses
import functools
import hashlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import jax

from attention_jax.devices import fetch, processes
from attention_jax.devices.background_compilation import BackgroundCompilation
from attention_jax.devices.memory_per_device import check_fits, describe_sharding
from attention_jax.errors import ConfigError, DivergenceError
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.runs.checkpoints.reading import Checkpoint
from attention_jax.runs.checkpoints.run_identity import check_origin, known_inputs, origin
from attention_jax.runs.config import ExperimentConfig, TrainingConfig, to_plain
from attention_jax.runs.divergence import said_of
from attention_jax.runs.held_out_texts import keep_held_out
from attention_jax.runs.length_limits import record_limits
from attention_jax.runs.named_files import located, record_files
from attention_jax.runs.provenance import usable_cpus
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.runs.run_inputs import (
    check_inputs,
    hashes_of_inputs,
    record_inputs,
    recorded_inputs,
)
from attention_jax.training.assembly import Assembly, assemble
from attention_jax.training.early_stopping import EarlyStopping, settled_step
from attention_jax.training.preemption import Preemption
from attention_jax.training.reporting.meter import Meter
from attention_jax.training.reporting.profiling import ProfileSteps
from attention_jax.training.reporting.run_log import RunLog
from attention_jax.types import Array, Params
from attention_jax.updates.averaging import CheckpointAverage
from attention_jax.updates.state import TrainState

T = TypeVar("T")


def train(
    config: ExperimentConfig,
    directory: RunDirectory,
    checkpointer: Checkpointer,
    preemption: Preemption,
    profiled: ProfileSteps | None = None,
) -> None:
    """Trains a model to the end, or resumes it; the checkpoints hold the result.

    Args:
      config: The experiment.
      directory: The run directory, claimed by the caller.
      checkpointer: Its checkpoints. If there are any, training continues after the newest.
      preemption: Asked after every step whether to save and leave.
      profiled: The steps of which the profiler writes a trace, if any.

    Raises:
      UserError: If the data, the config or the directory is at fault; `DivergenceError`, one of
        its kinds, if losses are not finite. A state that is known to have diverged is not saved.
      Preempted: If the process was told to stop; the state has been saved then.
    """
    settings = config.training
    _, step_rng = rngs = jax.random.split(jax.random.key(config.seed))
    # Preparing texts may take minutes, and there is nothing to save yet: a signal ends it at once.
    with preemption.at_once():
        parts = assemble(config, directory, begins=not processes.from_first(checkpointer.steps))
        _begin(parts, config, directory)
        state, done, stopping, train_step = _start(parts, checkpointer, config, directory, rngs)
    began, sharding = time.monotonic(), describe_sharding(parts.strategy, state)
    started = began - stopping.seconds
    meter, settled = _meter(settings, state), settled_step(config)
    with train_step, _naming_good_steps(checkpointer), RunLog(
        directory, settings, parts, step=done, time_use=stopping.time_use, profiled=profiled
    ) as log:  # fmt: skip
        source = _record(parts, config, directory, sharding)
        log.start(count_parameters(state.params), sharding, seconds=stopping.seconds)

        for step in range(done + 1, parts.total_steps + 1):
            if stopping.stopped:
                break
            batch = log.timed("data", next, parts.batches)
            batch = parts.strategy.place(batch, settings.accumulate_steps)
            with preemption.at_once() if step == done + 1 else contextlib.nullcontext():  # compiles
                state, metrics = log.dispatched(step, train_step, state, batch, step_rng)
            # Steps run asynchronously: the meter reads the metrics of the step before this one.
            log.training(meter.add(step, metrics))

            told_to_stop = preemption.requested(step)
            last, metric = step == parts.total_steps, None
            is_planned = _is_multiple(step, settings.evaluate_every_steps)
            if last or is_planned:
                log.training(meter.flush(end=last))  # the validation waits for the device anyway
                values = _measured(log, parts.validation, state, step)
                state = _with_plateau(state, parts, values) if is_planned else state
                value = values.get(settings.metric, math.nan)
                if is_planned and step > settled:
                    stopping, metric = stopping.after(value, step, settings), value
                else:
                    stopping = stopping.ended(value, settings) if last else stopping
                log.validation(step, values, best=stopping.is_best(step))

            is_due = last or _is_due(step, stopping, settings)
            if is_due or told_to_stop:
                log.training(meter.flush(end=last or stopping.stopped))
                if is_due and not (last or is_planned):  # not validated: is it finite at least?
                    _measured(log, parts.validation.check, state, step)
                seconds, time_use = time.monotonic() - started, log.time_use()
                stopping = dataclasses.replace(stopping, seconds=seconds, time_use=time_use)
                log.timed(
                    "save", checkpointer.save, step, state, config=source, metric=metric,
                    data=parts.batches.state(), host=dataclasses.asdict(stopping),
                    interim=not _counts(step, last, stopping, settings)
                )  # fmt: skip
                directory.add_to_run(saving=checkpointer.cost.describe(time.monotonic() - began))
            if told_to_stop:
                _leave(log, checkpointer, preemption, step)
        if line := _chosen(parts.total_steps, stopping, settings):
            log.say(line)
        log.timed("save", checkpointer.wait)
        directory.add_to_run(time_use=log.end(), parameters=hash_parameters(state.params))


def _leave(log: RunLog, checkpointer: Checkpointer, preemption: Preemption, step: int) -> None:
    """Ends the process once the step is saved."""
    log.timed("save", checkpointer.wait)
    log.say(f"told to stop: step {step} is saved, the same command continues")
    preemption.leave()


def hash_parameters(params: Params) -> str:
    """Returns a SHA-256 of every bit of the parameters, by which two trainings are compared."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(fetch(params)):
        digest.update(jax.tree_util.keystr(path).encode())
        digest.update(leaf.tobytes())
    return digest.hexdigest()


def count_parameters(params: Params) -> int:
    """Returns the number of scalar parameters."""
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def _begin(parts: Assembly, config: ExperimentConfig, directory: RunDirectory) -> None:
    """Checks memory and inputs, before anything has been computed or written."""
    check_fits(parts.like)
    check_inputs(recorded_inputs(directory), directory, parts.task, config.data)


def _record(
    parts: Assembly, config: ExperimentConfig, directory: RunDirectory, sharding: Mapping[str, Any]
) -> dict[str, Any]:
    """Writes config, sharding and inputs to the run directory, now that all checks have passed.

    Returns:
      What each checkpoint records of its origin.
    """
    # Files come first: by the config that was there before, paths that are given anew are known.
    record_files(directory, located(config, directory))
    directory.write_config(to_plain(config))
    directory.add_to_run(finished=None, sharding=sharding)
    record_inputs(directory, parts.task)
    keep_held_out(directory, config, parts.task)
    record_limits(directory, parts.limits)
    return origin(config, directory, hashes_of_inputs(directory, parts.task))


def _start(
    parts: Assembly,
    checkpointer: Checkpointer,
    config: ExperimentConfig,
    directory: RunDirectory,
    rngs: Array,
) -> tuple[TrainState, int, EarlyStopping, BackgroundCompilation]:
    """Draws a new training state, or resumes one, while the update is compiled.

    Args:
      parts: The training.
      checkpointer: Its checkpoints.
      config: The experiment.
      directory: The run directory.
      rngs: Two keys, of the initial parameters and of the steps.

    Returns:
      (state, updates made, record of early stopping, the update).
    """
    init_rng, step_rng = rngs
    state, done, stopping = _resumed(parts, checkpointer, config, directory)
    steps = 0 if stopping.stopped else parts.total_steps - done
    with contextlib.ExitStack() as begun:
        train_step = begun.enter_context(_compiling(parts, config.training, steps, step_rng))
        if state is None:
            state = parts.start(init_rng)
        begun.pop_all()  # from here on the caller closes it
    return state, done, stopping, train_step


def _compiling(
    parts: Assembly, settings: TrainingConfig, steps: int, rng: Array
) -> BackgroundCompilation:
    """Begins to compile the update for the batch shapes of the next `steps` steps."""
    place = functools.partial(parts.strategy.place, parts=settings.accumulate_steps)
    batches = map(place, parts.batches.one_of_each_shape(steps))
    # Half of the cores: a compiler has threads of its own besides, and the steps go on meanwhile.
    # With both of two cores, trainings took a quarter longer to where all was compiled.
    threads = max(1, (usable_cpus() or 1) // 2)
    return BackgroundCompilation(parts.train_step, parts.like, batches, rng, threads=threads)


def _resumed(
    parts: Assembly, checkpointer: Checkpointer, config: ExperimentConfig, directory: RunDirectory
) -> tuple[TrainState | None, int, EarlyStopping]:
    """Resumes from the newest good checkpoint, if there are any.

    Returns:
      (state or None, updates made, record of early stopping).

    Raises:
      CheckpointError: If there are checkpoints, but no good one.
    """
    checkpoint = checkpointer.restore(parts.like)
    if checkpoint is None:
        return None, 0, EarlyStopping()
    _check_continues(checkpointer, checkpoint, config, directory, parts.total_steps)
    check_inputs(known_inputs(checkpoint), directory, parts.task, config.data)
    stopping = EarlyStopping(**checkpoint.host).resumed(config.training)
    parts.batches.restore(checkpoint.data)
    # The last step of a training that is now made longer: saved because it was the last, and it
    # would not be there had the training been as long from the beginning.
    if checkpoint.step < parts.total_steps and not _counts(
        checkpoint.step, False, stopping, config.training
    ):
        checkpointer.make_interim(checkpoint.step)
        if checkpoint.host.get("ends_best") and processes.is_first():
            print(
                f"notice: step {checkpoint.step}, the best, was validated only because training "
                f"ended there, and goes when the next step is saved; a copy of {directory.path} "
                "keeps it",
                file=sys.stderr,
            )
    return checkpoint.state, checkpoint.step, stopping


def _check_continues(
    checkpointer: Checkpointer,
    checkpoint: Checkpoint,
    config: ExperimentConfig,
    directory: RunDirectory,
    total_steps: int,
) -> None:
    """Refuses checkpoints of another run, and a length that the training has passed already."""
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


@contextlib.contextmanager
def _naming_good_steps(checkpointer: Checkpointer) -> Iterator[None]:
    """Adds to a divergence in the block which checkpoint was the last good one.

    Interim checkpoints, which only an interruption asked for, are not named.
    """
    try:
        yield
    except DivergenceError as error:
        checkpointer.wait()
        # After the save under way, which may be the last good one, has been committed.
        good = processes.from_first(checkpointer.counting_steps)
        known = f"step {good[-1]} is the last good checkpoint" if good else "no checkpoint is good"
        raise DivergenceError(
            f"{error}; {known}. A smaller config.optimizer.learning_rate or clip_norm may help, in "
            "a new --workdir"
        ) from None


def _measured(log: RunLog, measure: Callable[[Params], T], state: TrainState, step: int) -> T:
    """Evaluates a state, saying of a divergence at which step it was found."""
    with said_of(f"training stopped at step {step}"):
        return log.timed("evaluation", measure, _evaluated(state))


def _is_multiple(step: int, every: int) -> bool:
    return bool(every) and step % every == 0


def _is_due(step: int, stopping: EarlyStopping, settings: TrainingConfig) -> bool:
    """Returns whether a step is saved even if nobody interrupts the training."""
    wanted = stopping.stopped or stopping.best_step == step
    return wanted or _is_multiple(step, settings.checkpoint_every_steps)


def _chosen(last: int, stopping: EarlyStopping, settings: TrainingConfig) -> str:
    """Says which step is evaluated once training has ended, where that is not the last one."""
    step = stopping.best_step
    if stopping.stopped:
        return f"stopped early: no better {settings.metric} since step {step}"
    averages = isinstance(settings.averaging, CheckpointAverage)  # the newest steps
    if step is None or averages or stopping.is_best(last):
        return ""
    return f"best {settings.metric} at step {step}, which is evaluated"


def _counts(step: int, last: bool, stopping: EarlyStopping, settings: TrainingConfig) -> bool:
    """Returns whether a saved step counts among the newest, which are kept and averaged.

    Under checkpoint averaging, a step saved only because it validated best does not: the mean
    would then be over checkpoints at uneven distances.
    """
    if last or _is_multiple(step, settings.checkpoint_every_steps):
        return True
    is_averaged = isinstance(settings.averaging, CheckpointAverage)
    return _is_due(step, stopping, settings) and not is_averaged


def _with_plateau(
    state: TrainState, parts: Assembly, values: Mapping[str, float]
) -> TrainState:
    """Lets the schedule `plateau` react to a validation."""
    plateau = parts.schedule.observe(state.plateau, values)
    # Placed as the compiled step expects its state.
    plateau = jax.tree.map(
        lambda leaf, like: jax.device_put(leaf, like.sharding), plateau, parts.like.plateau
    )
    return dataclasses.replace(state, plateau=plateau)


def _evaluated(state: TrainState) -> Params:
    """Returns the parameters to validate: their moving average, or else the last ones.

    The mean of checkpoints is for the end of training only; see `CheckpointAverage`.
    """
    return state.params if state.average is None else state.average
