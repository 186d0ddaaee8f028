"""chrF from sufficient statistics of each sentence, which bootstrap resampling sums many times."""

import collections
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.unknown import scorable

ORDER = 6
BETA = 2
FIELDS = 3 * ORDER

Counts = list[collections.Counter]


def chrf_statistics(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> Float[np.ndarray, "N F"]:
    """Sufficient statistics of chrF: counts n-grams of each sentence; rows may be summed.

    Args:
      hypotheses: N detokenised outputs; for unknown words see `unknown`.
      references: The references of each of them, in any number. As in sacrebleu, the one with the
        highest chrF of its own is counted.

    Returns:
      For each order of character n-grams from 1 to 6, without white space: how many the hypothesis
      has, how many the reference has, and how many match.
    """
    hypotheses = scorable(hypotheses, references)
    rows = np.zeros((len(hypotheses), FIELDS))
    for row, hypothesis, variants in zip(rows, hypotheses, references, strict=True):
        written = _ngrams(hypothesis)
        candidates = np.array(
            [_statistics(written, _ngrams(variant)) for variant in variants], np.float64
        )
        row[:] = candidates[chrf_from_statistics(candidates).argmax()]
    return rows


def chrf_from_statistics(statistics: Float[np.ndarray, "*R F"]) -> Float[np.ndarray, "*R"]:
    """ChrF: computes the corpus score (0 to 100) from summed statistics, as sacrebleu does.

    chrF = 100 (1 + b^2) P R / (b^2 P + R),  b = 2

    P and R are the means of precision and recall over the orders of which both sides have n-grams.

    Source:
      Popovic 2015, sec. 2; orders without n-grams are left out as in sacrebleu.
    """
    counts = statistics.reshape(*statistics.shape[:-1], ORDER, 3)  # *R F -> *R order 3
    written, wanted, matches = np.moveaxis(counts, -1, 0)  # each *R order
    counted = (written > 0) & (wanted > 0)
    orders = np.maximum(counted.sum(axis=-1), 1)
    # `np.where` discards what is divided by zero here, but computes it first.
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(counted, matches / written, 0.0).sum(axis=-1) / orders
        recall = np.where(counted, matches / wanted, 0.0).sum(axis=-1) / orders
        score = 100 * (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)
    return np.where(precision + recall > 0, score, 0.0)


def _statistics(written: Counts, wanted: Counts) -> list[int]:
    """Counts the n-grams of a sentence and one reference, order by order."""
    found: list[int] = []
    for one, other in zip(written, wanted, strict=True):
        # As in sacrebleu, n-grams longer than the reference are not held against the hypothesis.
        found += [one.total() if other else 0, other.total(), (one & other).total()]
    return found


def _ngrams(text: str) -> Counts:
    """Counts the character n-grams of every order."""
    text = "".join(text.split())
    return [
        collections.Counter(text[start : start + order] for start in range(len(text) - order + 1))
        for order in range(1, ORDER + 1)
    ]
