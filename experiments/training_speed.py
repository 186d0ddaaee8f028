"""How fast the runs of a grid have trained, from their records."""

import json

import numpy as np

from experiments.grid import Run

METRICS = "metrics.jsonl"


def tokens_per_second(run: Run) -> float:
    """Returns the median rate of a run in target tokens, from its record."""
    lines = (run.record / METRICS).read_text(encoding="utf-8").splitlines()
    metrics = [json.loads(line) for line in lines]
    return float(np.median([m["tokens_per_second"] for m in metrics if m["split"] == "train"]))
