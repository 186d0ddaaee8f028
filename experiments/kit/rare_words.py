"""Recall of rare words: how many of the reference's rare words are in the outputs of a run.

A program that a grid runs where training ends; it reads the predictions and references that the run
has left, and decodes nothing.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.data.text.words import words_of_text
from attention_jax.runs.load import TrainedRun, task_of
from attention_jax.sweeps.grid import GridRun
from experiments.kit import kept_counts

USAGE = """
Counts the rare words of every test sentence that a run has found, from its predictions.test.tsv.

usage: python -m experiments.kit.rare_words --workdir=RUN
"""
FILE = "rare_words.npz"
MOST_OCCURRENCES = 5  # of a rare word, in the training text of the run


@dataclasses.dataclass(frozen=True, eq=False)
class RareWords:
    """One seed of a system: a row for each sentence, as `evaluation.seeds` takes it.

    Attributes:
      counts: How many rare words were found, and how many there are in the reference.
    """

    counts: Float[np.ndarray, "N 2"]

    def score(self, sums: Float[np.ndarray, "*N 2"]) -> Float[np.ndarray, "*N"]:
        """Recall in percent, of sums of rows."""
        return 100 * sums[..., 0] / np.maximum(sums[..., 1], 1)


def rare_word_counts(
    outputs: Sequence[str], references: Sequence[str], known: Mapping[str, int]
) -> RareWords:
    """Counts the rare words of references, and those of them that outputs have, as often as both.

    Args:
      outputs: The output of each sentence.
      references: Its reference.
      known: How often each word is in the training text; words that it lacks are rare, too.
    """
    rows = []
    for output, reference in zip(outputs, references, strict=True):
        wanted = Counter(
            word for word in words_of_text(reference) if known.get(word, 0) <= MOST_OCCURRENCES
        )
        found = wanted & Counter(words_of_text(output))
        rows.append((found.total(), wanted.total()))
    return RareWords(np.array(rows, float).reshape(-1, 2))


def record(run: TrainedRun) -> None:
    """Writes the counts of the test split into the run directory.

    Raises:
      RunDirectoryError: If there are no predictions.
    """
    targets = task_of(run).split("train").targets
    known = Counter(word for text in targets for word in words_of_text(text))
    rows = kept_counts.predictions(run.directory.prediction_table("test"))
    outputs, references = ([row[name] for row in rows] for name in ("output", "reference"))
    kept_counts.write(run, FILE, rare_word_counts(outputs, references, known).counts)


def of_run(run: GridRun) -> RareWords:
    """Returns the rare words that a finished run has found, from its record."""
    return RareWords(kept_counts.of_run(run, FILE))


if __name__ == "__main__":
    kept_counts.run_program(record, USAGE)
