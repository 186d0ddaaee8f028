"""Ensemble of the seeds of a cell: what runs that differ in their seed alone predict together.

A program that a grid runs where training ends. It joins the run to the runs of its cell that are
finished by then, so that the last one to finish speaks for all of them.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attention_jax.analysis.evaluate import Evaluation
from attention_jax.runs.ensemble import ensemble_of
from attention_jax.runs.load import TrainedRun, load_run, task_of
from attention_jax.runs.run_directory import RunDirectory, read_json, writing
from attention_jax.sweeps.grid import GridRun
from experiments.kit import kept_counts

USAGE = """
Scores the test split as the finished runs of a cell predict it together, by the geometric mean of
their probabilities, in seed_ensemble.npz.

usage: python -m experiments.kit.seed_ensemble --workdir=RUN
"""
FILE = "seed_ensemble.npz"
_SEEDS = "seeds"


def record(run: TrainedRun) -> None:
    """Writes the seeds and what they reach together; of a seed alone, no scores.

    Raises:
      UserError: If the runs do not fit each other, or the file cannot be written.
    """
    place = run.directory.path
    others = [path for path in sorted(place.parent.glob("seed*")) if _is_other(path, place)]
    members = [run, *map(load_run, others)]
    scores = {}
    if others:
        joined = ensemble_of(members)
        scores = Evaluation(joined, task_of(joined, ["test"])).evaluate("test")
    with writing(place / FILE):
        np.savez_compressed(
            place / FILE, **{_SEEDS: [member.config.seed for member in members]}, **scores
        )


def of_runs(runs: Sequence[GridRun]) -> dict[str, float]:
    """Returns what all runs of a cell reach together, by its metric.

    Returns:
      Nothing where no record is of all of them, or there is one alone.
    """
    seeds = sorted(run.seed for run in runs)
    for run in runs:
        kept = run.arrays(FILE) if run.keeps(FILE) else {_SEEDS: np.zeros(0)}
        if len(seeds) > 1 and sorted(kept[_SEEDS].tolist()) == seeds:
            return {name: float(value) for name, value in kept.items() if name != _SEEDS}
    return {}


def _is_other(path: Path, place: Path) -> bool:
    """Whether a directory is another finished run of the cell."""
    finished = (read_json(RunDirectory(path, writes=False).run) or {}).get("finished")
    return bool(finished) and path.resolve() != place.resolve()


if __name__ == "__main__":
    kept_counts.run_program(record, USAGE)
