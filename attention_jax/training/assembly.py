"""Assembly of a training: its parts, built from the config."""

import dataclasses
import functools
import itertools
import sys
from collections.abc import Callable, Sequence

import jax

from attention_jax.data.config import DataConfig
from attention_jax.data.loading import TaskData, build_task
from attention_jax.data.pipeline import TrainIterator, make_train_iterator
from attention_jax.data.text.pieces import share_ids
from attention_jax.data.text.storage import has_vocabularies
from attention_jax.devices import Strategy, build_strategy, local_shards, process_share, processes
from attention_jax.devices.placement import placed_shapes
from attention_jax.errors import ConfigError
from attention_jax.models import build_model
from attention_jax.objectives import Objective
from attention_jax.runs.checkpoints.weights import initial_weights, starting_from
from attention_jax.runs.config import ExperimentConfig
from attention_jax.runs.length_limits import (
    NO_LENGTHS,
    Limits,
    PairLengths,
    limits_of_pairs,
    recorded_limits,
    with_limits,
)
from attention_jax.runs.named_files import (
    check_beginning,
    check_texts_are_there,
    located,
)
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.search import SearchConfig
from attention_jax.training.early_stopping import check_mode
from attention_jax.training.needed_fields import with_needed_fields
from attention_jax.training.validation import Validation
from attention_jax.types import Model
from attention_jax.updates.optimizers import build_optimizer
from attention_jax.updates.plateau import Plateau, PlateauState
from attention_jax.updates.schedules import Schedule, build_schedule
from attention_jax.updates.state import TrainState, start_state
from attention_jax.updates.step import TrainStep, make_train_step


@dataclasses.dataclass(frozen=True)
class Assembly:
    """Everything that the training loop uses.

    Attributes:
      strategy: How several devices compute it.
      task: The data set.
      batches: Its training batches, endless.
      unusable: Pairs of the user's training text that were left out.
      total_steps: Length of training in updates.
      objective: The loss.
      schedule: The learning rate.
      start: Draws the state before the first step from a key.
      like: Shape, type and placement of every leaf of the state.
      train_step: Compiled for the mesh.
      validation: Measures the validation split.
      lengths: Tokens of the source and of the target of every pair that is trained on; of none
        where the model reads no source, to which nothing is in proportion.
      limits: How long outputs may be where the config leaves that open.
      search: How outputs are searched for, within these limits.
    """

    strategy: Strategy
    task: TaskData
    batches: TrainIterator
    unusable: int
    total_steps: int
    objective: Objective
    schedule: Schedule
    start: Callable[[jax.Array], TrainState]
    like: TrainState
    train_step: TrainStep
    validation: Validation
    lengths: PairLengths
    limits: Limits
    search: SearchConfig


def assemble(
    config: ExperimentConfig,
    directory: RunDirectory,
    devices: Sequence[jax.Device] | None = None,
    *,
    begins: bool = True,
) -> Assembly:
    """Builds the parts of a training from its config; nothing is computed on a device yet.

    Args:
      config: The experiment.
      directory: Vocabularies are loaded from here, or trained and saved here.
      devices: What to train on; all devices by default. Devices that only a compiler knows
        (ahead-of-time compilation) will do.
      begins: Whether training starts at step 0; a training that resumes from a checkpoint needs
        no initial weights.

    Raises:
      UserError: If the data or the config is at fault.
    """
    # The mesh first: one that does not fit the devices is refused before any text is prepared.
    strategy = build_strategy(config.sharding, devices)
    config = _with_its_files(config, directory, begins)
    objective = Objective(config.objectives)
    # The first process trains the vocabularies and saves them; the others load what it saved.
    task = processes.after_first(
        lambda: build_task(config.data, directory.vocabularies),
        is_made=lambda: has_vocabularies(directory.vocabularies),
    )
    _check_sources(config, task)
    model = build_model(config.model, task.source_vocabulary.size, task.target_vocabulary.size)
    objective.check(model)
    task = _read_by(model, task, config.data)
    task = processes.after_first(
        lambda: with_needed_fields(task, config.data, objective, directory, _to_standard_error),
        is_made=directory.links.exists,
    )
    batches = make_train_iterator(
        task, config.data, config.seed, *process_share(strategy.mesh),
        rows_multiple=local_shards(strategy.mesh) * config.training.accumulate_steps,
    )
    total_steps = config.training.total_steps(batches.batches_per_epoch)
    optimizer = build_optimizer(config.optimizer)
    schedule = build_schedule(
        config.schedule,
        config.optimizer.learning_rate,
        steps_per_epoch=batches.batches_per_epoch,
        total_steps=total_steps,
    )
    averaging, ratio = config.training.averaging, config.training.max_gradient_ratio

    # Only shapes and placements so far. `start` is jitted with them, so that parameters too large
    # for one device are drawn where their shards belong and never exist in one place.
    fresh = functools.partial(
        start_state, model, optimizer, averaging=averaging, max_gradient_ratio=ratio,
        carried=objective.start(),
    )
    like = placed_shapes(fresh, strategy, model.parameter_axes())
    config.training.freezing.check(like.params)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, like)
    start = jax.jit(fresh, out_shardings=shardings)
    start = _with_initial_weights(start, config, like, directory) if begins else start

    train_step = make_train_step(
        model, objective, optimizer, schedule,
        averaging=averaging, max_gradient_ratio=ratio, freezing=config.training.freezing,
        accumulate_steps=config.training.accumulate_steps, exchange=strategy.exchange(shardings),
    )  # fmt: skip
    train_step = strategy.compile_train_step(train_step, shardings)
    lengths = NO_LENGTHS if config.task.continues else batches.lengths
    limits = limits_of_pairs(*lengths) if begins else recorded_limits(directory)
    search = with_limits(config.search, limits)
    validation = Validation(
        dataclasses.replace(config, search=search), task, model, objective, strategy, shardings
    )
    _check_metrics(config, schedule, validation.metric_names(like.params))
    return Assembly(
        strategy, task, batches, config.data.count_unusable(), total_steps, objective, schedule,
        start, like, train_step, validation, lengths, limits, search,
    )


def _with_its_files(
    config: ExperimentConfig, directory: RunDirectory, begins: bool
) -> ExperimentConfig:
    """Replaces the paths of a config's files by the places where this run finds them now."""
    config = located(config, directory)
    if begins:
        check_beginning(directory, config)
    check_texts_are_there(config, "--config.")
    return config


def _to_standard_error(line: str) -> None:
    if jax.process_index() == 0:
        print(line, file=sys.stderr, flush=True)


def _with_initial_weights(
    start: Callable[[jax.Array], TrainState],
    config: ExperimentConfig,
    like: TrainState,
    directory: RunDirectory,
) -> Callable[[jax.Array], TrainState]:
    path = config.training.initial_weights
    if not path:
        return start
    return starting_from(start, initial_weights(path, like.params, directory.vocabularies), like)


def _check_sources(config: ExperimentConfig, task: TaskData) -> None:
    """Checks that the model reads the source as the data has it.

    Raises:
      ConfigError: If source and target embeddings are tied of two separate vocabularies, or if the
        source is read as if it had other sizes.
    """
    ties_both = getattr(config.model, "tie_embeddings", None) == "all"
    if ties_both and not share_ids(task.source_vocabulary, task.target_vocabulary):
        raise ConfigError(
            "config.model.tie_embeddings: expected a joint vocabulary for 'all' "
            "(config.data.subwords.joint=True), found one for each side"
        )
    read = getattr(config.model, "sources", {})
    for source, sizes in config.data.source_sizes.items():
        for part, name in itertools.product(("input", "encoder"), sizes):
            found = getattr(getattr(read.get(source), part, None), name, sizes[name])
            if found != sizes[name]:
                raise ConfigError(
                    f"config.model.sources.{source}.{part}.{name}: expected {sizes[name]}, as the "
                    f"data of config.data have it, found {found}"
                )


def _read_by(model: Model, task: TaskData, data_config: DataConfig) -> TaskData:
    """Adds the fields that a model reads; raises ConfigError if it needs others for a source."""
    fields = model.fields
    unread = [name for name in data_config.must_be_read if name not in fields]
    if unread:
        raise ConfigError(
            f"config.model.sources: expected an input that reads {' and '.join(unread)}, which are "
            f"apart from the source here, found one of {', '.join(fields) or 'nothing'}"
        )
    return task.with_fields(fields)


def _check_metrics(config: ExperimentConfig, schedule: Schedule, names: list[str]) -> None:
    """Raises ConfigError if a metric to watch is not measured, or its mode is the wrong way round.

    Checked before the first step, since the first validation may come hours later.
    """
    if config.training.metric not in names:
        raise ConfigError(
            f"config.training.metric: expected one of {', '.join(names)}, found "
            f"{config.training.metric!r} (error rates and BLEU need "
            "config.evaluation.num_validation_examples)"
        )
    metrics = config.task.metrics
    check_mode(config.training.metric, config.training.mode, "config.training.mode", metrics)
    # A dry run, for its ConfigError where `plateau` watches a metric that is not among these.
    schedule.observe(PlateauState.start(), dict.fromkeys(names, 0.0))
    if isinstance(config.schedule, Plateau):
        check_mode(config.schedule.metric, config.schedule.mode, "config.schedule.mode", metrics)
