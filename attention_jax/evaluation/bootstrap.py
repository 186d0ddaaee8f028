"""Paired bootstrap resampling: confidence intervals of scores, and whether two systems differ."""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.bleu import bleu_from_statistics, bleu_resamples

Score = Callable[[Float[np.ndarray, "*R F"]], Float[np.ndarray, "*R"]]


@dataclasses.dataclass(frozen=True)
class Difference:
    """Significance of the difference of two scores.

    Attributes:
      difference: Score B minus score A, or the same of their means over seeds.
      low: Lower end of the 95 % confidence interval of the difference.
      high: Its upper end.
      p_value: Two-sided: the probability of a difference at least this large in either direction
        if the systems were equally good.
    """

    difference: float
    low: float
    high: float
    p_value: float


def bleu_interval(
    statistics: Float[np.ndarray, "N F"], resamples: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """Bootstrap confidence interval: computes the 95 % percentile interval of corpus BLEU."""
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
    """Paired bootstrap: tests whether B scores differently from A on the same resampled sentences.

    Args:
      statistics_a: Sufficient statistics of each sentence of system A, as `bleu_statistics` makes.
      statistics_b: The same of system B, sentence by sentence.
      score: Computes the corpus score from sums of rows.
      resamples: How many test sets are drawn.
      seed: Of the draws, which are the same for both systems.

    Source:
      Koehn 2004, sec. 4; the p-value is that of `resampled_difference`.
    """
    both = (statistics_a, statistics_b)
    # One seed and one number of sentences: the two calls draw the same sentences.
    score_a, score_b = (float(score(rows.sum(axis=0))) for rows in both)
    drawn_a, drawn_b = (score(bleu_resamples(rows, resamples, seed)) for rows in both)
    return resampled_difference(score_b - score_a, drawn_b - drawn_a)


def resampled_difference(difference: float, drawn: Float[np.ndarray, " R"]) -> Difference:
    """Bootstrap test: judges a difference by how much it varies among resamples.

    p = (1 + number of resamples with |d* - mean(d*)| >= |d|) / (1 + resamples)

    Here d is the `difference` on the whole test set, and d* are those of the resamples, `drawn`.

    Source:
      Riezler and Maxwell 2005, as in sacrebleu; two-sided.
    """
    low, high = np.percentile(drawn, [2.5, 97.5])
    # Centred, the resamples show what chance does without a difference. The margin counts equals
    # that rounding has moved apart.
    extreme = np.abs(drawn - drawn.mean()) >= abs(difference) - 1e-12
    return Difference(
        difference=difference,
        low=float(low),
        high=float(high),
        p_value=float((1 + extreme.sum()) / (1 + len(drawn))),
    )
