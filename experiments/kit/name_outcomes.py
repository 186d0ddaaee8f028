"""Outcomes of names: how near the best name is that a run gives to every test function.

A program that a grid runs where training ends; it reads the predictions and references that the run
has left, and decodes nothing.
"""

import dataclasses

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.naming import naming_counts
from attention_jax.runs.load import TrainedRun
from attention_jax.sweeps.grid import Run
from experiments.kit import kept_counts

USAGE = """
Measures F1 of the name of every test function of a run, from its predictions.test.tsv.

usage: python -m experiments.kit.name_outcomes --workdir=RUN
"""
FILE = "name_outcomes.npz"


@dataclasses.dataclass(frozen=True, eq=False)
class NameOutcomes:
    """One seed of a system: a row for each function, as `evaluation.seeds` takes it.

    Attributes:
      counts: F1 of sub-tokens, whether the name is right, and 1.
    """

    counts: Float[np.ndarray, "N 3"]

    def score(self, sums: Float[np.ndarray, "*N 3"]) -> Float[np.ndarray, "*N"]:
        """Mean F1 in percent, of sums of rows."""
        return 100 * sums[..., 0] / sums[..., 2]


def record(run: TrainedRun) -> None:
    """Writes the outcomes of the test split into the run directory.

    Raises:
      RunDirectoryError: If there are no predictions.
    """
    rows = kept_counts.predictions(run.directory.prediction_table("test"))
    outputs, references = ([[row[name]] for row in rows] for name in ("output", "reference"))
    found = naming_counts(outputs, references)  # of one suggestion, ranks 1 and 5 are the same
    kept_counts.write(run, FILE, found[:, [0, 1, -1]])


def of_run(run: Run) -> NameOutcomes:
    """Returns the outcomes of a finished run, from its record."""
    return NameOutcomes(kept_counts.of_run(run, FILE))


if __name__ == "__main__":
    kept_counts.run_program(record, USAGE)
