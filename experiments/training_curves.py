"""What the runs of a grid have logged while they trained, from their records."""

from collections.abc import Sequence

import numpy as np

from attention_jax.plotting.curves import Curve, curves_by_metric, read_metrics
from experiments.grid import Run

METRICS = "metrics.jsonl"


def tokens_per_second(run: Run) -> float:
    """Returns the median rate of a run in target tokens, from its record."""
    return _median(run, "tokens_per_second")


def sentences_per_second(run: Run) -> float:
    """Returns the median rate of a run in sentence pairs, whatever it cuts them into."""
    return _median(run, "steps_per_second") * run.resolved()["data"]["batch_size"]


def _median(run: Run, metric: str) -> float:
    _, values = curves_by_metric(read_metrics(run.record / METRICS))[metric]["train"]
    return float(np.median(values))


def mean_curve(runs: Sequence[Run], metric: str, split: str) -> Curve:
    """Returns (steps, means over the runs) of a metric that all runs have logged alike.

    Raises:
      ValueError: If they have logged it at different steps.
    """
    curves = [
        curves_by_metric(read_metrics(run.record / METRICS))[metric][split] for run in runs
    ]
    steps = curves[0][0]
    if any(not np.array_equal(steps, each) for each, _ in curves):
        raise ValueError(f"{metric}: expected runs that logged it at the same steps")
    return steps, np.mean([values for _, values in curves], axis=0)
