"""Areas of gold rectangles: the share of attention that is in them where it is even.

A program that a grid runs where training ends; it reads the predictions and references that the run
has left, and decodes nothing. Its share is to be compared with that of the run's own attention: it
is of the same symbols, those of outputs that are right.
"""

import numpy as np
from jaxtyping import Float

from attention_jax.data.captions import GOLD_BOXES, gold_cells
from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Split
from attention_jax.evaluation.attention_statistics import shares_inside
from attention_jax.runs.load import TrainedRun, task_of
from attention_jax.sweeps.grid import GridRun
from experiments.kit import kept_counts

USAGE = """
Sums up the share of a picture's cells that is in the gold rectangle of each symbol of the test
captions which a run writes right, from its predictions.test.tsv.

usage: python -m experiments.kit.gold_areas --workdir=RUN
"""
FILE = "gold_areas.npz"


def record(run: TrainedRun) -> None:
    """Writes the sums of the test split into the run directory, zeros where nothing is gold.

    Raises:
      RunDirectoryError: If there are no predictions, or the sums cannot be written.
    """
    rows = kept_counts.predictions(run.directory.prediction_table("test"))
    right = [index for index, row in enumerate(rows) if row["output"] == row["reference"]]
    kept_counts.write(run, FILE, areas(task_of(run).split("test"), right, run.config.data))


def areas(split: Split, right: list[int], data_config: DataConfig) -> Float[np.ndarray, "N 2"]:
    """Sums up the shares of even attention over the symbols of each caption.

    Args:
      split: The captions.
      right: Which of them count.
      data_config: The data's config.

    Returns:
      The sum of each caption, and the number of symbols that have a rectangle.
    """
    sums = np.zeros((len(split), 2))
    if GOLD_BOXES in split.extras:
        for index, inside in zip(right, gold_cells(split, right, data_config), strict=True):
            shares = shares_inside(np.ones(inside.shape), inside)
            sums[index] = shares.sum(), len(shares)
    return sums


def even_share(run: GridRun) -> float | None:
    """Returns the mean share in per cent; None of records without it, or where nothing is gold."""
    if not run.keeps(FILE):
        return None
    total, number = kept_counts.of_run(run, FILE).sum(axis=0)
    return float(100 * total / number) if number else None


if __name__ == "__main__":
    kept_counts.run_program(record, USAGE)
