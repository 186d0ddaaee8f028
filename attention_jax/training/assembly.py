"""The parts of a training, built from its config."""

import dataclasses
import functools
import sys
from collections.abc import Callable

import jax
from jax.sharding import Mesh

from attention_jax.data.pipeline import TrainIterator, make_train_iterator
from attention_jax.data.tasks import Task, build_task
from attention_jax.errors import ConfigError
from attention_jax.models import build_model
from attention_jax.objectives import Objective
from attention_jax.training.config import ExperimentConfig
from attention_jax.training.links import training_links
from attention_jax.training.optimizers import build_optimizer
from attention_jax.training.placement import placed_shapes
from attention_jax.training.run_directory import RunDirectory
from attention_jax.training.schedules import PlateauState, Schedule, build_schedule
from attention_jax.training.sharding import jit_train_step, make_mesh
from attention_jax.training.state import TrainState, start_state
from attention_jax.training.step import TrainStep, make_train_step
from attention_jax.training.validation import Validation
from attention_jax.training.weights import starting_from


@dataclasses.dataclass(frozen=True)
class Assembly:
    """Everything that the training loop uses.

    Attributes:
      mesh: The devices.
      task: The data set.
      batches: Its training batches, endless.
      total_steps: Length of training in updates.
      objective: The loss.
      schedule: The learning rate.
      start: Draws the state before the first step from a key.
      like: Shape, type and placement of every leaf of the state.
      train_step: Compiled for the mesh.
      validation: Measures the validation split.
    """

    mesh: Mesh
    task: Task
    batches: TrainIterator
    total_steps: int
    objective: Objective
    schedule: Schedule
    start: Callable[[jax.Array], TrainState]
    like: TrainState
    train_step: TrainStep
    validation: Validation


def assemble(config: ExperimentConfig, directory: RunDirectory) -> Assembly:
    """Builds the parts of a training; nothing is computed on a device yet.

    Args:
      config: The experiment.
      directory: Its vocabularies are loaded, or trained and saved there.

    Raises:
      UserError: If the data or the config is at fault.
    """
    # ---- Devices --------------------------------------------------------------------------------
    mesh = make_mesh()

    # ---- Data -----------------------------------------------------------------------------------
    objective = Objective(config.objectives)
    task = build_task(config.data, directory.vocabularies)
    links = training_links(task, config.data, objective, directory, _to_standard_error)
    batches = make_train_iterator(
        task, config.data, config.seed, jax.process_index(), jax.process_count(), links
    )
    total_steps = config.training.total_steps(batches.batches_per_epoch)

    # ---- Model, loss, update rule ---------------------------------------------------------------
    model = build_model(config.model, task.source_vocabulary.size, task.target_vocabulary.size)
    objective.check(model)
    optimizer = build_optimizer(config.optimizer)
    schedule = build_schedule(
        config.schedule,
        config.optimizer.learning_rate,
        steps_per_epoch=batches.batches_per_epoch,
        total_steps=total_steps,
    )
    averaging = config.training.averaging

    # ---- Where every array lives ----------------------------------------------------------------
    fresh = functools.partial(start_state, model, optimizer, averaging=averaging)
    like = placed_shapes(fresh, mesh)
    config.training.freezing.check(like.params)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, like)
    start = jax.jit(fresh, out_shardings=shardings)
    if config.training.initial_weights:
        start = starting_from(start, config.training.initial_weights, like)

    # ---- What is compiled -----------------------------------------------------------------------
    parts = config.training.accumulate_steps
    train_step = make_train_step(
        model,
        objective,
        optimizer,
        schedule,
        averaging=averaging,
        accumulate_steps=parts,
        freezing=config.training.freezing,
    )
    train_step = jit_train_step(train_step, mesh, shardings)
    validation = Validation(config, task, model, objective, mesh, shardings)
    _check_metrics(config, schedule, validation.metric_names(like.params))
    return Assembly(
        mesh, task, batches, total_steps, objective, schedule, start, like, train_step, validation
    )


def _to_standard_error(line: str) -> None:
    if jax.process_index() == 0:
        print(line, file=sys.stderr, flush=True)


def _check_metrics(config: ExperimentConfig, schedule: Schedule, names: list[str]) -> None:
    """Raises ConfigError now, not at the first validation, if a metric is not measured."""
    if config.training.metric not in names:
        raise ConfigError(
            f"config.training.metric: expected one of {', '.join(names)}, found "
            f"{config.training.metric!r} (error rates and BLEU need "
            "config.evaluation.num_validation_examples)"
        )
    schedule.observe(PlateauState.start(), dict.fromkeys(names, 0.0))
