"""Words that a model selects, or weights most, beside those that people have marked: their counts.

A program that a grid runs where training ends. What is counted of a generator is its selection; of
a classifier the words of the largest weights, at many shares of all words, so that it can be
compared with a generator at the share that this one selects.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.data.decoded import Gathered
from attention_jax.data.examples import Split
from attention_jax.data.tasks import classify, rationalize
from attention_jax.decoding.forced_decoding import gather_outputs
from attention_jax.errors import DataError
from attention_jax.evaluation.rationales import (
    best_words,
    document_scores,
    rationale_counts,
    scores_of_sums,
)
from attention_jax.runs.load import TrainedRun, task_of
from attention_jax.sweeps.grid import GridRun
from experiments.kit import kept_counts

USAGE = """
Counts the words of every test document that a generator selects, or that a classifier weights most,
and those of them that people have marked, in selected_words.npz.

usage: python -m experiments.kit.selected_words --workdir=RUN
"""
FILE = "selected_words.npz"
SHARES = (*range(31), *range(40, 101, 10))  # of weighted words, in per cent


@dataclasses.dataclass(frozen=True, eq=False)
class SelectedWords:
    """One seed of a system: a row for each document, as `evaluation.seeds` takes it.

    Attributes:
      counts: Of each document, as `evaluation.rationales.document_scores` makes them.
      judged_by: The score by which it is compared, by its name in `scores`.
    """

    counts: Float[np.ndarray, "N 11"]
    judged_by: str = "token_f1"

    def score(self, sums: Float[np.ndarray, "*R 11"]) -> Float[np.ndarray, "*R"] | float:
        """Returns that score in per cent, of sums of rows."""
        return scores_of_sums(sums)[self.judged_by]

    @property
    def scores(self) -> dict[str, float]:
        """All scores of rationales, by name."""
        return {name: float(one) for name, one in scores_of_sums(self.counts.sum(axis=0)).items()}


def selections(split: Split, gathered: Gathered) -> list[list[np.ndarray]]:
    """Returns which words of each document are selected: once, or for each of `SHARES`."""
    if "rationale" in gathered:
        return [rationalize.selections(split, gathered)]
    weights = classify.word_weights(split, gathered)
    return [[best_words(values, share / 100) for values in weights] for share in SHARES]


def record(run: TrainedRun) -> None:
    """Writes the counts of the test split into the run directory.

    Raises:
      DataError: If nobody has marked evidence in it.
      RunDirectoryError: If they cannot be written.
    """
    test = task_of(run).split("test")
    evidence = test.extras.get("evidence")
    if not evidence:
        raise DataError(f"{run.place}: expected test documents with evidence marked, found none")
    found = selections(test, gather_outputs(run, test, run.task.gathers))
    counts = [rationale_counts(selected, evidence) for selected in found]
    kept_counts.write(run, FILE, np.stack(counts, axis=1))  # N K 7, for K selections


def of_generator(run: GridRun, judged_by: str = "token_f1") -> SelectedWords:
    """Returns what a generator has selected, from the record of its run."""
    return SelectedWords(document_scores(kept_counts.of_run(run, FILE))[:, 0], judged_by)


def of_weights(
    run: GridRun, shares: Sequence[float], judged_by: str = "token_f1"
) -> SelectedWords:
    """Returns what a classifier weights most, from the record of its run.

    Args:
      run: The run.
      shares: Of all words, in per cent. What is between two of `SHARES` is interpolated, and rows
        are means over them.
      judged_by: The score by which it is compared.
    """
    rows = document_scores(kept_counts.of_run(run, FILE))  # N K 11
    return SelectedWords(np.apply_along_axis(_mean_at, 1, rows, shares), judged_by)


def _mean_at(values: Float[np.ndarray, " K"], shares: Sequence[float]) -> float:
    return float(np.interp(shares, SHARES, values).mean())


if __name__ == "__main__":
    kept_counts.run_program(record, USAGE)
