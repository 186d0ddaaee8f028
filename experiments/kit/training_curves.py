"""Training curves and rates of the runs of a grid, from their records."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from attention_jax.errors import RunDirectoryError
from attention_jax.plotting.curves import Curve
from attention_jax.plotting.system_curves import averaged_curve, system_curves
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import GridRun
from experiments.kit import templates

LEGEND = templates.fill("legend_of_curves")
_COLUMNS = 6  # of a table of curves: as many of their steps
# For each system the steps that all of its seeds have logged, and their values there, `R N`.
SeedCurves = Mapping[str, tuple[Int[np.ndarray, " N"], Float[np.ndarray, "R N"]]]


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


def curves_of_seeds(
    systems: Mapping[str, Sequence[GridRun]], metric: str, split: str
) -> SeedCurves:
    """Reads a logged metric of each system's seeds; runs whose records lack it are left out."""
    found = {
        name: [_curve(run, metric, split) for run in runs if _logs(run, metric, split)]
        for name, runs in systems.items()
    }
    return {name: _at_common_steps(curves) for name, curves in found.items() if curves}


def spread_curves(curves: SeedCurves, label: str, title: str) -> Figure:
    """Learning curves: draws each system's mean over seeds, in a band from least to most.

    Args:
      curves: The curves of each system.
      label: Name of the values, for the axis.
      title: Title of the figure.
    """
    means = {name: (steps, values.mean(0)) for name, (steps, values) in curves.items()}
    figure = system_curves({"": means}, label, title)
    (axes,) = figure.axes
    for line, (steps, values) in zip(axes.lines, curves.values(), strict=True):
        axes.fill_between(
            steps, values.min(0), values.max(0), color=line.get_color(), alpha=0.2, linewidth=0
        )
    return figure


def table_of_curves(curves: SeedCurves, heading: str, base: str) -> str:
    """Learning curves as a table: means and deviations over seeds at a few of the shared steps.

    Its last column is the first step at which a system is where the base is at its lowest.

    Args:
      curves: The curves of each system, which are to fall.
      heading: Heading of the systems.
      base: The system to compare with; without it, there is no last column.
    """
    shared = sorted(set.intersection(*(set(steps.tolist()) for steps, _ in curves.values())))
    places = np.linspace(0, len(shared) - 1, min(_COLUMNS, len(shared))).round().astype(int)
    shown = [shared[place] for place in places]
    least = curves[base][1].mean(0).min() if base in curves else None
    rows = []
    for name, (steps, values) in curves.items():
        at = [values[:, steps == step][:, 0].tolist() for step in shown]
        row = [name, str(len(values)), *map(tables.spread, at)]
        if least is not None:
            reached = steps[values.mean(0) <= least]
            row.append(f"{reached[0]:,}" if len(reached) else tables.NOTHING)
        rows.append(row)
    last = [] if least is None else [f"as low as {base} at its best"]
    return tables.table([heading, "seeds", *(f"{step:,}" for step in shown), *last], rows)


def _at_common_steps(curves: Sequence[Curve]) -> Curve:
    steps, _ = averaged_curve(curves)
    return steps.astype(int), np.stack([values[np.isin(each, steps)] for each, values in curves])


def _logs(run: GridRun, metric: str, split: str) -> bool:
    return split in run.record().curves.get(metric, {})


def _median(run: GridRun, metric: str) -> float:
    _, values = _curve(run, metric, "train")
    return float(np.median(values))


def _curve(run: GridRun, metric: str, split: str) -> Curve:
    found = run.record().curves.get(metric, {}).get(split)
    if found is None:
        raise RunDirectoryError(f"{run.name}: expected {metric!r} of the {split} split, found none")
    steps, values = found
    return np.array(steps), np.array(values)
