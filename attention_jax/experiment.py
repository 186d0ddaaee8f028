"""A run from beginning to end: claim its directory, train, evaluate, or find it complete."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attention_jax.devices import processes
from attention_jax.errors import RunDirectoryError
from attention_jax.runs import provenance
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.runs.config import (
    ExperimentConfig,
    changed_fields,
    may_change,
    recorded_config,
    to_plain,
)
from attention_jax.runs.load import load_run, task_of
from attention_jax.runs.named_files import check_moved, has_changed, named_files
from attention_jax.runs.pruning import refuse_to_continue
from attention_jax.runs.results import format_results
from attention_jax.runs.run_directory import RunDirectory, read_json
from attention_jax.runs.writers import require_packages
from attention_jax.training.early_stopping import watched_fields
from attention_jax.training.loop import train
from attention_jax.training.preemption import Preemption
from attention_jax.training.reporting.profiling import ProfileSteps

_MOST_NAMED = 3  # differences that fit a line


def run_experiment(
    config: ExperimentConfig,
    workdir: str | Path,
    profiled: ProfileSteps | None = None,
    preemption: Preemption | None = None,
) -> None:
    """Trains and evaluates an experiment in a directory, continuing what is there.

    Args:
      config: The experiment.
      workdir: Its run directory; made if there is none.
      profiled: The steps of which the profiler writes a trace, if any.
      preemption: How signals are answered; as a program of its own does if not given.

    Raises:
      UserError: If the directory, the data or the config is at fault.
      Preempted: If the process was told to stop; nothing is lost then.
    """
    # First of all: a missing package should not be found after the directory was claimed.
    require_packages(config.training.writers)
    directory = RunDirectory(workdir, writes=processes.is_first())
    preemption = preemption or Preemption()
    with contextlib.ExitStack() as claim, preemption.watching():

        def begin() -> bool:
            claim.enter_context(directory.claimed())
            is_unchanged = adopt_config(directory, config)
            _note_changed_files(directory)
            if is_unchanged and is_complete(directory, config):
                return False
            refuse_to_continue(directory)
            _record_start(directory, config)
            return True

        # One process decides for all: others may see what the first has already changed.
        if processes.from_first(begin):
            with open_checkpoints(directory, config) as checkpointer:
                train(config, directory, checkpointer, preemption, profiled)
            # An evaluation holds nothing to save: it stops when told to, and is made again.
            with preemption.at_once():
                _evaluate(config, directory)
            directory.add_to_run(finished=provenance.now())
        elif directory.writes:
            print(f"This run is complete: {directory.path}")
        if directory.writes:
            task, splits = config.task, config.evaluation.splits
            print(format_results(directory, task.shown, splits, task.table))


def _evaluate(config: ExperimentConfig, directory: RunDirectory) -> None:
    """Evaluates the splits: all processes decode their share, the first one writes and draws."""
    # Not above: a training that may last for days needs nothing of it.
    from attention_jax.analysis.evaluate import Evaluation

    if config.evaluation.splits:
        run = load_run(directory.path)
        evaluation = Evaluation(run, task_of(run))
        for split in config.evaluation.splits:
            evaluation.evaluate(split)
    if directory.writes:
        from attention_jax.analysis.pictures import draw_learning_curves

        draw_learning_curves(directory, config.task.metrics)


def adopt_config(directory: RunDirectory, config: ExperimentConfig) -> bool:
    """Writes the config of a new run, or checks it against the one that the directory holds.

    What may change is written by the training, once it is sure to continue.

    Returns:
      Whether the directory already held this config.

    Raises:
      RunDirectoryError: If a field differs on which updates that were made depend.
    """
    old = directory.read_config()
    if old is not None and not directory.is_trained:
        directory.forget()
        old = None
    if old is not None:
        # Read and written again, so that former names and new defaults are no differences.
        old = to_plain(recorded_config(directory))
        changed = changed_fields(old, to_plain(config))
        refused = _refused(directory, config, changed)
        if refused:
            named = "; ".join(refused[:_MOST_NAMED])
            if others := len(refused[_MOST_NAMED:]):
                named += f"; and {others} more field{'s' * (others > 1)}"
            raise RunDirectoryError(
                f"{directory.path} holds a run with another config: {named}; "
                "choose another --workdir, or the config of the run"
            )
        return not changed
    directory.write_config(to_plain(config))
    return False


def _refused(
    directory: RunDirectory, config: ExperimentConfig, changed: Mapping[str, tuple[Any, Any]]
) -> list[str]:
    """Lists why a run cannot go on with another config: a field's value, or a file's content."""
    files, watched, refused = named_files(config), _watched(config), []
    # Where another part was chosen, its name is reported and not all its fields.
    renamed = tuple(path.removesuffix("name") for path in changed if path.endswith(".name"))
    for path, (before, after) in changed.items():
        if may_change(path, watched) or path.startswith(renamed) and not path.endswith(".name"):
            continue
        has_moved = before and path in files
        reason = check_moved(directory, path, after) if has_moved else ""
        if reason is not None:
            refused.append(f"{path} is {before!r} there, {after!r} now{reason}")
    decisive = [path for path in files if path not in changed and path.startswith(watched)]
    return refused + [
        f"{path} has another content now"
        for path in decisive
        if has_changed(directory, config, path)
    ]


def _watched(config: ExperimentConfig) -> tuple[str, ...]:
    """Lists what decides the metrics that a training goes by: for its best step, for its rate."""
    metrics = (config.training.metric, getattr(config.schedule, "metric", config.training.metric))
    of_task = config.task.metrics
    return tuple(field for metric in metrics for field in watched_fields(metric, of_task))


def is_complete(directory: RunDirectory, config: ExperimentConfig) -> bool:
    """Returns whether the run was trained to its end and every split evaluated."""
    results = read_json(directory.results) or {}
    finished = (read_json(directory.run) or {}).get("finished")
    return bool(finished) and all(split in results for split in config.evaluation.splits)


def open_checkpoints(directory: RunDirectory, config: ExperimentConfig) -> Checkpointer:
    """Opens the checkpoints of a run as its config says."""
    return Checkpointer(
        directory.checkpoints,
        keep_latest=config.training.keep_latest,
        keep_best=config.training.keep_best,
        mode=config.training.mode,
    )


def _note_changed_files(directory: RunDirectory) -> None:
    """Says which files of the user's own the run was begun with in another form."""
    facts = read_json(directory.run) or {}
    if changed := provenance.changed_own_files(facts):
        print(f"notice: changed since {directory.path} began: {', '.join(changed)}", flush=True)


def _record_start(directory: RunDirectory, config: ExperimentConfig) -> None:
    facts = read_json(directory.run) or {}
    directory.add_to_run(
        **provenance.describe_run(seed=config.seed),
        started=[*facts.get("started", []), provenance.now()],
    )
