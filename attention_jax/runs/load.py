"""Loading a trained model from a run directory: config, vocabularies and the best parameters."""

import dataclasses
import functools
import pathlib
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from attention_jax.configuration import typed
from attention_jax.data.field import Field
from attention_jax.data.lexicon import load_resources
from attention_jax.data.loading import TaskData, build_task
from attention_jax.data.task import Task
from attention_jax.data.text.storage import has_vocabularies, load_vocabularies
from attention_jax.devices import (
    Strategy,
    build_strategy,
    build_strategy_here,
    fetch,
    processes,
)
from attention_jax.devices.config import ShardingConfig
from attention_jax.devices.placement import placed_shapes
from attention_jax.errors import CheckpointError, DataError, RunDirectoryError
from attention_jax.evaluation.attention_alignment import linking_weights
from attention_jax.models import build_model
from attention_jax.objectives import Objective
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.runs.checkpoints.reading import Checkpoint
from attention_jax.runs.checkpoints.run_identity import check_origin, known_inputs
from attention_jax.runs.config import ExperimentConfig, recorded_config
from attention_jax.runs.divergence import check_parameters, said_of
from attention_jax.runs.held_out_texts import held_out_data
from attention_jax.runs.length_limits import recorded_limits, with_limits
from attention_jax.runs.named_files import Moved, check_texts_are_there, located
from attention_jax.runs.pruning import Kept, read_kept
from attention_jax.runs.run_directory import RunDirectory, read_json
from attention_jax.runs.run_inputs import TEXTS, check_texts, recorded_inputs
from attention_jax.search.config import SearchConfig
from attention_jax.types import Model, Params
from attention_jax.updates.averaging import CheckpointAverage, evaluation_params
from attention_jax.updates.optimizers import build_optimizer
from attention_jax.updates.state import TrainState, start_state


@dataclasses.dataclass(frozen=True)
class TrainedRun:
    """A trained model with what it needs for decoding; its run may still be training.

    Attributes:
      directory: The run directory.
      config: The run's config, in which open length limits are filled in from the run.
      source_vocabulary: Turns sources into ids.
      target_vocabulary: Turns ids into outputs.
      model: The network.
      params: The parameters that are evaluated: the best, or an average.
      step: The update after which they were saved.
      strategy: How several devices compute with it; each holds all parameters.
      shardings: Placement of a training state with that strategy.
      is_reverse: Whether sources are the targets of the config's data; see `reverse_run`.
      texts: Hashes of the texts that it was trained on, by split, from its checkpoint.
      resources: What fields of a user's text look up, such as a lexicon.
    """

    directory: RunDirectory
    config: ExperimentConfig
    source_vocabulary: Any
    target_vocabulary: Any
    model: Model
    params: Params
    step: int
    strategy: Strategy
    shardings: TrainState
    is_reverse: bool = False
    texts: Mapping[str, str] | None = None
    resources: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def task(self) -> Task:
        """The task of its model."""
        return self.config.task

    @property
    def further_sources(self) -> tuple[str, ...]:
        """Names of texts, and of what else lines name, that its model reads beside the source."""
        names = *self.config.data.further_sources, *self.task.beside
        return tuple(name for name in names if name in self.model.fields)

    @property
    def unread_sources(self) -> frozenset[str]:
        """Names of those that its data has and its model does not read."""
        names = *self.config.data.further_sources, *self.task.beside
        return frozenset(names) - {*self.further_sources}

    @property
    def place(self) -> str:
        """The checkpoint of its parameters, in words for messages; the first one of an ensemble."""
        return f"checkpoint step {self.step} of {self.directory.path}"

    @property
    def links_tokens(self) -> bool:
        """Whether it attends to tokens of a text, so that alignments can be told and drawn."""
        return self._attends_to(field for field in self.task.input_fields if field.is_text)

    @property
    def attends(self) -> bool:
        """Whether it attends to what its task reads, be that a text or something else."""
        return self._attends_to(self.task.input_fields)

    def _attends_to(self, fields: Iterable[Field]) -> bool:
        names = {field.name for field in fields}
        return "alignment" in self.model.provides and self.model.begins_from in names

    @property
    def has_aligner(self) -> bool:
        """Whether an aligner says its links, other than the attention that translates."""
        return "aligner" in self.model.provides

    @property
    def tells_origins(self) -> bool:
        """Whether it copies, and can tell from where."""
        return "origins" in self.model.provides

    @property
    def draws_on_canvas(self) -> bool:
        """Whether it attends to what its task can draw, such as places of a picture."""
        return self.attends and self.task.canvas is not None

    @property
    def alignment_shift(self) -> int:
        """Steps between writing a token and the attention that aligns it: 1 if aligned when read.

        See `Objective.alignment_shift`.
        """
        return Objective(self.config.objectives).alignment_shift

    def linking_weights(self, weights: Float[np.ndarray, "T S"]) -> Float[np.ndarray, "T S"]:
        """Returns the weights that link each token of an output; see `linking_weights`."""
        return linking_weights(weights, self.alignment_shift)

    def linking_heads(self, heads: Float[np.ndarray, "H T S"]) -> Float[np.ndarray, "H T S"]:
        """Returns those of the decoder's own heads, which an aligner's shift does not concern."""
        shift = shift_of_heads(self, self.alignment_shift)
        return np.stack([linking_weights(head, shift) for head in heads])


def shift_of_heads(run: TrainedRun, shift: int) -> int:
    """Returns the shift of the decoder's own attention: none where an aligner is shifted."""
    return 0 if run.has_aligner else shift


def task_of(run: TrainedRun, wanted: Collection[str] = ()) -> TaskData:
    """Builds the data of a run, with the vocabularies of its training.

    Args:
      run: The run.
      wanted: The splits that are used. Where the user's files are gone, those that were held out of
        training are read from the run itself, if it is these alone.

    Raises:
      DataError: If the data is not there, or is not what the run was trained on.
    """
    try:
        check_texts_are_there(run.config, "--")
    except DataError:
        task = held_out_data(run.directory, run.config) if wanted else None
        if task is None or not {*wanted} <= {*task.splits}:
            raise
    else:
        task = build_task(run.config.data, run.directory.vocabularies)
    task = task.with_fields(Objective(run.config.objectives).fields.union(run.model.fields))
    for known in (recorded_inputs(run.directory)[TEXTS], run.texts):
        check_texts(known, run.directory, task, run.config.data)
    return task


def load_run(
    path: str | pathlib.Path,
    search: Mapping[str, Any] | None = None,
    step: int | None = None,
    moved: Moved = Moved(),
) -> TrainedRun:
    """Loads the model of a run directory.

    Args:
      path: The directory.
      search: How to search, in place of what the run's config says.
      step: The checkpoint to take, instead of the best one or an average.
      moved: New places of files that are not where the run's config says.

    Raises:
      ConfigError: If `search` is wrong.
      RunDirectoryError: If `path` is not the directory of a run.
      CheckpointError: If it has no good checkpoint, or one that does not fit its vocabularies.
      DivergenceError: If its parameters are not finite.
    """
    directory = RunDirectory(path)
    directory.require()
    config = recorded_config(directory)
    if search is not None:
        config = dataclasses.replace(config, search=typed(SearchConfig, search, "search"))
    if not has_vocabularies(directory.vocabularies):
        raise RunDirectoryError(
            f"{directory.path}: expected a trained run, found one whose training never began (no "
            "vocabularies)"
        )
    source, target = load_vocabularies(directory.vocabularies)
    model = build_model(config.model, source.size, target.size)
    optimizer, averaging = build_optimizer(config.optimizer), config.training.averaging
    start = functools.partial(
        start_state, model, optimizer, averaging=averaging,
        max_gradient_ratio=config.training.max_gradient_ratio,
        carried=Objective(config.objectives).start(),
    )  # fmt: skip
    axes = model.parameter_axes()
    # Restored as training placed it if these devices allow, so that no device has to hold it whole.
    like = placed_shapes(start, build_strategy_here(config.sharding), axes)
    kept = _kept(directory, like, config, step)
    with said_of(f"checkpoint step {kept.step} of {directory.path}"):
        check_parameters(fetch(kept.params))
    # Search needs all parameters on every device; the optimiser's state is not copied there.
    strategy = build_strategy(ShardingConfig())
    shardings = strategy.shardings(like, axes)
    params = jax.device_put(kept.params, shardings.params)
    within = with_limits(config.search, recorded_limits(directory))
    config = dataclasses.replace(config, search=within)
    return TrainedRun(
        directory, located(moved(config), directory), source, target, model, params, kept.step,
        strategy, shardings, texts=kept.texts,
        resources=load_resources(directory.vocabularies, source, target),
    )  # fmt: skip


def note_unfinished(*runs: TrainedRun) -> None:
    """Says of runs that are about to be used whose training or evaluation has not ended."""
    for run in runs:
        if processes.is_first() and not (read_json(run.directory.run) or {}).get("finished"):
            print(f"notice: not finished: {run.place}, which is used", file=sys.stderr)


def _kept(
    directory: RunDirectory, like: TrainState, config: ExperimentConfig, step: int | None
) -> Kept:
    """Reads the parameters of a run, from the file of a pruned one or else from its checkpoints."""
    if directory.is_pruned:
        if step is not None:
            raise CheckpointError(
                f"{directory.path}: expected checkpoints to find step {step} among, found a pruned "
                "run, which has one set of parameters"
            )
        return read_kept(directory, like.params)
    with Checkpointer(directory.checkpoints, read_only=True) as checkpointer:
        if step is None:
            chosen, params = best_params(checkpointer, like, config, directory)
        else:
            chosen, params = params_of_step(checkpointer, like, config, directory, step)
    return Kept(params, chosen.step, known_inputs(chosen).get(TEXTS))


def best_params(
    checkpointer: Checkpointer, like: Any, config: ExperimentConfig, directory: RunDirectory
) -> tuple[Checkpoint, Params]:
    """Chooses the parameters to evaluate, and returns them with the checkpoint they are from.

    Under checkpoint averaging they are the mean of the newest checkpoints; otherwise those of the
    best step, or its moving average if it has one.

    Raises:
      CheckpointError: If there is no good checkpoint, or it is of another run.
    """
    newest = checkpointer.restore(like)
    if newest is None:
        raise CheckpointError(f"{checkpointer.directory}: no checkpoint yet")
    check_origin(checkpointer, newest, config, directory)
    averaging = config.training.averaging
    if isinstance(averaging, CheckpointAverage):
        checkpoints = checkpointer.restore_each(like, newest.step)
        # A generator: at most two checkpoints are in memory while they are averaged.
        params = (checkpoint.state.params for checkpoint in checkpoints)
        return newest, evaluation_params(averaging, newest.state.params, None, params)
    chosen = _best(checkpointer, like, newest)
    return chosen, evaluation_params(averaging, chosen.state.params, chosen.state.average)


def params_of_step(
    checkpointer: Checkpointer,
    like: Any,
    config: ExperimentConfig,
    directory: RunDirectory,
    step: int,
) -> tuple[Checkpoint, Params]:
    """Returns the checkpoint of a given step and its parameters, or their moving average.

    Raises:
      CheckpointError: If there is no good checkpoint of this step, or it is of another run.
    """
    steps = checkpointer.steps()
    if step not in steps:
        raise CheckpointError(
            f"{checkpointer.directory}: expected step {step}, found "
            f"{', '.join(map(str, steps)) or 'none'}"
        )
    found = checkpointer.restore(like, step, exact=True)
    check_origin(checkpointer, found, config, directory)
    averaging = config.training.averaging
    if isinstance(averaging, CheckpointAverage):
        return found, found.state.params
    return found, evaluation_params(averaging, found.state.params, found.state.average)


def _best(checkpointer: Checkpointer, like: Any, newest: Checkpoint) -> Checkpoint:
    # The newest checkpoint knows which step was best, since the host's state is saved with each.
    step = newest.host.get("best_step")
    if step is None or step == newest.step or newest.host.get("ends_best"):
        return newest
    try:
        return checkpointer.restore(like, step, exact=True)
    except CheckpointError as error:
        if processes.is_first():
            print(
                f"warning: the best step cannot be evaluated, step {newest.step} is: {error}",
                file=sys.stderr,
            )
        return newest
