"""Bootstrap resampling: how far a score could be chance, and whether two systems differ."""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.bleu import bleu_from_statistics, bleu_resamples

Score = Callable[[Float[np.ndarray, "*R F"]], Float[np.ndarray, "*R"]]


@dataclasses.dataclass(frozen=True)
class Difference:
    """How much higher one score is than another.

    Attributes:
      difference: Of the scores, or of their means.
      low: Lower end of the 95 % interval of the difference.
      high: Its upper end.
      p_value: Probability of a difference at least this large, either way, if there were none.
    """

    difference: float
    low: float
    high: float
    p_value: float


def bleu_interval(
    statistics: Float[np.ndarray, "N F"], resamples: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """Returns the 95 % percentile interval of corpus BLEU from `bleu_statistics`."""
    scores = bleu_from_statistics(bleu_resamples(statistics, resamples, seed))
    low, high = np.percentile(scores, [2.5, 97.5])
    return float(low), float(high)


def paired_difference(
    statistics_a: Float[np.ndarray, "N F"],
    statistics_b: Float[np.ndarray, "N F"],
    score: Score,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """Tests whether two systems' scores differ, on the same resampled sentences.

    Args:
      statistics_a: What the score needs of each sentence of system A, such as `bleu_statistics`.
      statistics_b: The same of system B.
      score: Computes the score of sums of rows.
      resamples: Draws of the bootstrap.
      seed: Its seed.

    Returns:
      Score of B minus score of A.

    Source:
      Koehn 2004, sec. 4; the p-value is that of `resampled_difference`.
    """
    both = (statistics_a, statistics_b)
    score_a, score_b = (float(score(rows.sum(axis=0))) for rows in both)
    drawn_a, drawn_b = (score(bleu_resamples(rows, resamples, seed)) for rows in both)
    return resampled_difference(score_b - score_a, drawn_b - drawn_a)


def resampled_difference(difference: float, drawn: Float[np.ndarray, " R"]) -> Difference:
    """Tests a difference against what it is in resamples.

    p = (1 + number of resamples with |d* - mean(d*)| >= |d|) / (1 + resamples)

    Args:
      difference: d, of the whole sample.
      drawn: d*, of each resample.

    Source:
      Riezler and Maxwell 2005, as in sacrebleu; two-sided.
    """
    low, high = np.percentile(drawn, [2.5, 97.5])
    extreme = np.abs(drawn - drawn.mean()) >= abs(difference) - 1e-12
    return Difference(
        difference=difference,
        low=float(low),
        high=float(high),
        p_value=float((1 + extreme.sum()) / (1 + len(drawn))),
    )
