"""Measures of translation and alignment, kept as counts of each sentence."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float

from attention_jax.errors import RunDirectoryError
from attention_jax.evaluation.aer import error_rate
from attention_jax.evaluation.bleu import bleu_from_statistics
from attention_jax.evaluation.chrf import chrf_from_statistics
from attention_jax.runs.files import replacing
from attention_jax.sweeps.grid import GridRun

FILE = "sentence_measures.npz"

Sums = Float[np.ndarray, "*R F"]
Scores = Float[np.ndarray, "*R"]


def share(sums: Sums) -> Scores:
    """Computes a percentage, 100 a / b, from sums of a and b."""
    # A resample may hold no sentence with a count: 0 / 0 is taken as 0.
    return 100 * sums[..., 0] / np.maximum(sums[..., 1], 1e-12)


@dataclasses.dataclass(frozen=True)
class CorpusScore:
    """A corpus-level score of sums of counts.

    Attributes:
      label: Its name in tables.
      score: Computes the score from sums of counts.
      is_better: `high`, `low`, or empty if neither is.
    """

    label: str
    score: Callable[[Sums], Scores]
    is_better: str


MEASURES: Mapping[str, CorpusScore] = {
    "bleu": CorpusScore("BLEU", bleu_from_statistics, "high"),
    "chrf": CorpusScore("chrF", chrf_from_statistics, "high"),
    "aer": CorpusScore("AER", error_rate, "low"),
    "saer": CorpusScore("SAER", error_rate, "low"),
    "match": CorpusScore("match", share, "high"),
    "probability_mass": CorpusScore("mass", share, "high"),
    "match_before": CorpusScore("match, row before", share, ""),
    "match_after": CorpusScore("match, row after", share, ""),
    "repeated": CorpusScore("repeated bigrams", share, "low"),
    "excess": CorpusScore("excess words", share, "low"),
    "missing": CorpusScore("missing words", share, "low"),
    "dropped": CorpusScore("dropped source words", share, "low"),
    "unattended": CorpusScore("fertility < 0.5", share, "low"),
    "overattended": CorpusScore("fertility > 1.5", share, "low"),
    "deviation": CorpusScore("coverage deviation", share, "low"),
    "agreement": CorpusScore("agreement with attention", share, ""),
    "changed": CorpusScore("other outputs", share, ""),
}


@dataclasses.dataclass(frozen=True, eq=False)
class SentenceMeasure:
    """Counts of a measure for each sentence; a `seeds.SentenceCounts`.

    Attributes:
      measure: The measure's name.
      counts: The contribution of each sentence, `N F`.
    """

    measure: str
    counts: Float[np.ndarray, "N F"]

    def score(self, sums: Sums) -> Scores:
        """Computes the score from sums of counts."""
        return MEASURES[self.measure].score(sums)


def save(path: Path, counts: Mapping[str, Float[np.ndarray, "_ _"]]) -> None:
    """Writes the counts of several measures to a file."""
    with replacing(path) as temporary:
        np.savez_compressed(
            temporary, **{name: np.asarray(rows, np.float32) for name, rows in counts.items()}
        )


def of_run(run: GridRun) -> dict[str, SentenceMeasure]:
    """Reads the measures of a finished run.

    Raises:
      RunDirectoryError: If its record has none.
    """
    return from_arrays(run.arrays(FILE), run.name)


def by_name(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, SentenceMeasure]]:
    """Returns the measures of what arrays called `NAME.MEASURE` are of, by name and measure."""
    found: dict[str, dict[str, SentenceMeasure]] = {}
    for key, rows in arrays.items():
        name, _, measured = key.rpartition(".")
        found.setdefault(name, {})[measured] = SentenceMeasure(measured, rows.astype(float))
    return found


def from_arrays(arrays: Mapping[str, np.ndarray], where: str) -> dict[str, SentenceMeasure]:
    """Returns the measures from the arrays that `save` has written.

    Args:
      arrays: The arrays of the file.
      where: The file, for the message.

    Raises:
      RunDirectoryError: If there is an array that is no known measure.
    """
    unknown = sorted(arrays.keys() - MEASURES.keys())
    if unknown:
        raise RunDirectoryError(f"{where}: expected measures, found {', '.join(unknown)}")
    return {name: SentenceMeasure(name, rows.astype(float)) for name, rows in arrays.items()}
