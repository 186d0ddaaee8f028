"""How far a BLEU score could be chance, and whether two systems differ."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.bleu import bleu_from_statistics, bleu_resamples, bleu_statistics
from attention_jax.evaluation.error_rates import check_parallel


@dataclasses.dataclass(frozen=True)
class PairedBootstrap:
    """How much better system B is than system A on the same sentences.

    Attributes:
      difference: BLEU of B minus BLEU of A.
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


def paired_bootstrap(
    hypotheses_a: Sequence[str],
    hypotheses_b: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    resamples: int = 1000,
    seed: int = 0,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> PairedBootstrap:
    """Tests whether two systems' BLEU scores differ, on the same resampled sentences.

    p = (1 + number of resamples with |d* - mean(d*)| >= |d|) / (1 + resamples)

    Source:
      Koehn 2004, sec. 4; the two-sided p-value as in Riezler and Maxwell 2005 and sacrebleu.
    """
    check_parallel(hypotheses_a, references)
    check_parallel(hypotheses_b, references)
    statistics = [
        bleu_statistics(hypotheses, references, tokenize=tokenize, lowercase=lowercase)
        for hypotheses in (hypotheses_a, hypotheses_b)
    ]
    score_a, score_b = (float(bleu_from_statistics(rows.sum(axis=0))) for rows in statistics)
    drawn_a, drawn_b = (
        bleu_from_statistics(bleu_resamples(rows, resamples, seed)) for rows in statistics
    )
    differences = drawn_b - drawn_a
    low, high = np.percentile(differences, [2.5, 97.5])
    extreme = np.abs(differences - differences.mean()) >= abs(score_b - score_a) - 1e-12
    return PairedBootstrap(
        difference=score_b - score_a,
        low=float(low),
        high=float(high),
        p_value=float((1 + extreme.sum()) / (1 + resamples)),
    )
