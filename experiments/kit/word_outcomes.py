"""Outcomes of words: what is right and wrong of every output of a run, for tests over words.

A program that a grid runs where training ends; it reads the predictions and references that the run
has left, and decodes nothing.
"""

import dataclasses
from pathlib import Path

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.error_rates import error_counts
from attention_jax.runs.load import TrainedRun
from attention_jax.spaced_words import spaced_words
from attention_jax.sweeps.grid import GridRun
from attention_jax.training.loop import count_parameters
from experiments.kit import kept_counts

USAGE = """
Counts what is right of every test word of a run, from its predictions.test.tsv.

usage: python -m experiments.kit.word_outcomes --workdir=RUN
"""
FILE = "word_outcomes.npz"


@dataclasses.dataclass(frozen=True, eq=False)
class WordOutcomes:
    """One seed of a system: a row for each word, as `evaluation.seeds` takes it.

    Attributes:
      counts: Whether a word is right, edits, symbols of its reference, and 1.
    """

    counts: Float[np.ndarray, "N 4"]

    def score(self, sums: Float[np.ndarray, "*N 4"]) -> Float[np.ndarray, "*N"]:
        """Exact match in percent, of sums of rows."""
        return 100 * sums[..., 0] / sums[..., 3]


def outcomes(path: Path, *, spaced: bool) -> WordOutcomes:
    """Reads the predictions of a run.

    Args:
      path: Its `predictions.SPLIT.tsv`.
      spaced: Whether spaces separate the symbols of outputs, as with phonemes; else they are
        characters.

    Raises:
      RunDirectoryError: If there is no such file, or no prediction in it.
    """
    rows = kept_counts.predictions(path)
    symbols = spaced_words if spaced else list
    edits, length, is_wrong, one = error_counts(
        [symbols(row["output"]) for row in rows], [[symbols(row["reference"])] for row in rows]
    ).T
    return WordOutcomes(np.stack([1 - is_wrong, edits, length, one], axis=-1))


def record(run: TrainedRun) -> None:
    """Writes the outcomes of the test split into the run directory, and how many parameters."""
    directory = run.directory
    spaced = not run.target_vocabulary.kind.startswith("character")
    found = outcomes(directory.prediction_table("test"), spaced=spaced)
    kept_counts.write(run, FILE, found.counts)
    directory.add_to_run(num_parameters=count_parameters(run.params))


def of_run(run: GridRun) -> WordOutcomes:
    """Returns what is right of the words of a finished run, from its record."""
    return WordOutcomes(kept_counts.of_run(run, FILE))


if __name__ == "__main__":
    kept_counts.run_program(record, USAGE)
