"""Scores of a split and of its bootstrap resamples, which every evaluated run leaves: for tests."""

from collections.abc import Callable, Iterable, Sequence

from attention_jax.analysis.resamples import read_resamples
from attention_jax.evaluation.seeds import Resampled
from attention_jax.sweeps.grid import GridRun
from attention_jax.sweeps.records import Kept
from experiments.kit.variants import Cells


def kept(*metrics: str, splits: Iterable[str] = ("test",)) -> Kept:
    """Returns what a record is to keep of them: these metrics that the run has; all if none."""
    return {_file(split): metrics or None for split in splits}


def of_run(metric: str, split: str = "test") -> Callable[[GridRun], Resampled]:
    """Returns what reads a metric from the record of a finished run."""
    return lambda run: read_resamples(run.arrays(_file(split)), run.name)[metric]


def keeping(cells: Cells, metric: str, split: str = "test") -> dict[str, Sequence[GridRun]]:
    """Returns the systems all of whose records have a metric."""
    file = _file(split)

    def has(run: GridRun) -> bool:
        return run.keeps(file) and metric in run.arrays(file)

    return {name: runs for name, runs in cells.items() if all(map(has, runs))}


def _file(split: str) -> str:
    return f"resamples.{split}.npz"
