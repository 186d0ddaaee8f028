"""Recall of rare words: how many of the reference's rare words are in the outputs of a run.

A program that a grid runs where training ends; it reads the predictions and references that the run
has left, and decodes nothing.
"""

import csv
import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from absl import flags
from jaxtyping import Float

from attention_jax.commands import cli
from attention_jax.data.text.words import words_of_text
from attention_jax.errors import RunDirectoryError
from attention_jax.runs.load import TrainedRun, load_run, task_of
from attention_jax.runs.run_directory import writing

USAGE = """
Counts the rare words of every test sentence that a run has found, from its predictions.test.tsv.

usage: python -m experiments.kit.rare_words --workdir=RUN
"""
FILE, ARRAY = "rare_words.npz", "counts"
MOST_OCCURRENCES = 5  # of a rare word, in the training text of the run


@dataclasses.dataclass(frozen=True, eq=False)
class RareWords:
    """One seed of a system: a row for each sentence, as `experiments.kit.seeds` takes it.

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


def main() -> None:
    """Counts and writes."""
    record(load_run(cli.require("workdir")))


def record(run: TrainedRun) -> None:
    """Writes the counts of the test split into the run directory.

    Raises:
      RunDirectoryError: If there are no predictions.
    """
    targets = task_of(run).split("train").targets
    known = Counter(word for text in targets for word in words_of_text(text))
    rows = _rows(run.directory.prediction_table("test"))
    outputs, references = ([row[name] for row in rows] for name in ("output", "reference"))
    path = run.directory.path / FILE
    with writing(path):
        counts = rare_word_counts(outputs, references, known).counts
        np.savez_compressed(path, **{ARRAY: counts.astype(np.float32)})


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be read: {error.strerror}") from None
    if not rows:
        raise RunDirectoryError(f"{path}: expected predictions, found none")
    return rows


def define_flags(argv: list[str]) -> list[str]:
    """Defines where the run is."""
    flags.DEFINE_string("workdir", None, "Directory of a finished run.")
    return argv


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
