"""Training curves and rates of the runs of a grid, from their records."""

from collections.abc import Sequence

import numpy as np

from attention_jax.errors import RunDirectoryError
from attention_jax.plotting.curves import Curve
from attention_jax.plotting.system_curves import averaged_curve
from attention_jax.sweeps.grid import GridRun


def tokens_per_second(run: GridRun) -> float:
    """Returns the median training speed of a run in target tokens per second."""
    return _median(run, "tokens_per_second")


def sentences_per_second(run: GridRun) -> float:
    """Returns the median training speed in sentence pairs per second, whatever the subwords."""
    # From the config of the record: the grid's may have changed since.
    return _median(run, "steps_per_second") * run.record().config["data"]["batch_size"]


def seconds_computed(run: GridRun) -> float:
    """Returns the seconds that a run spent computing, summed over resumed processes."""
    _, seconds = _curve(run, "seconds/compute", "train")
    return float(np.sum(seconds))


def mean_curve(runs: Sequence[GridRun], metric: str, split: str) -> Curve:
    """Averages a logged metric over runs: (steps, means).

    Raises:
      ValueError: If they have logged it at different steps.
    """
    curves = [_curve(run, metric, split) for run in runs]
    steps = curves[0][0]
    if any(not np.array_equal(steps, each) for each, _ in curves):
        raise ValueError(f"{metric}: expected runs that logged it at the same steps")
    return averaged_curve(curves)


def _median(run: GridRun, metric: str) -> float:
    _, values = _curve(run, metric, "train")
    return float(np.median(values))


def _curve(run: GridRun, metric: str, split: str) -> Curve:
    found = run.record().curves.get(metric, {}).get(split)
    if found is None:
        raise RunDirectoryError(f"{run.name}: expected {metric!r} of the {split} split, found none")
    steps, values = found
    return np.array(steps), np.array(values)
