"""Attention head statistics: entropy, monotonicity, diagonality and positional heads."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from attention_jax.evaluation.attention_statistics import monotonicity, normalized_entropy

Heads = Float[np.ndarray, "H _ _"]
Reach = Int[np.ndarray, "H _"]  # how many positions each row of a head may attend to
OFFSETS = (-1, 0, 1)


def diagonality(weights: Float[np.ndarray, "T S"]) -> float:
    """Diagonality: computes how close attention is to the diagonal, from 1 (on it) to 0 (farthest).

    1 - mean_t sum_s a_ts |s / (S - 1) - t / (T - 1)|, over rows that have weight

    Each row is normalised. With a single row or column the result is 1.
    """
    weights = np.asarray(weights, np.float64)
    rows, columns = weights.shape
    total = weights.sum(axis=1)
    if min(rows, columns) < 2 or not total.any():
        return 1.0
    # Positions as fractions of their sequence: S beside T 1 -> T S.
    distance = np.abs(np.arange(columns) / (columns - 1) - np.arange(rows)[:, None] / (rows - 1))
    far = (weights * distance).sum(axis=1)[total > 0] / total[total > 0]
    return float(1.0 - far.mean())


def offset_mass(weights: Float[np.ndarray, "T S"], offset: int) -> float:
    """Positional heads: averages the weight on the position t + offset, over steps that have one.

    Steps that attend to nothing are left out. The result is nan where no step has one.
    """
    weights = np.asarray(weights, np.float64)
    diagonal, rows = np.diagonal(weights, offset), weights.any(axis=1)
    diagonal = diagonal[rows[max(0, -offset) :][: len(diagonal)]]
    return float(diagonal.mean()) if diagonal.size else float("nan")


def head_statistics(
    sentences: Sequence[Heads], reaches: Sequence[Reach] | None = None
) -> list[dict[str, float]]:
    """Attention head statistics: averages each head's over sentences.

    Args:
      sentences: Weights `H T S` of each sentence, without padding.
      reaches: How many positions each row may attend to; all if None.

    Returns:
      For each head `entropy` (normalised, see `mean_entropy`), `monotonicity`, `diagonality`, and
      `positional`: the largest mean weight at one distance (-1, 0 or +1), and that distance as
      `offset`. Sentences without steps at a distance do not count for it. Empty without sentences.
    """
    if not sentences:
        return []
    found = []
    for head in range(sentences[0].shape[0]):
        matrices = [heads[head] for heads in sentences]
        reach = None if reaches is None else [rows[head] for rows in reaches]
        masses = [_mean([offset_mass(weights, offset) for weights in matrices])
                  for offset in OFFSETS]  # fmt: skip
        best = int(np.argmax(masses))
        found.append(
            {
                "entropy": mean_entropy(matrices, reach),
                "monotonicity": float(np.mean([monotonicity(w) for w in matrices])),
                "diagonality": float(np.mean([diagonality(w) for w in matrices])),
                "positional": float(masses[best]),
                "offset": float(OFFSETS[best]),
            }
        )
    return found


def mean_entropy(
    matrices: Sequence[np.ndarray], reaches: Sequence[np.ndarray] | None
) -> float:
    """Attention entropy: averages the normalised entropies of a head's rows over all sentences.

    Rows without a choice, behind a causal mask the first, or without weight are left out; the
    result is 0 where no row is left.

    Args:
      matrices: Weights `T S` of one head, without padding.
      reaches: How many positions each row may attend to; all if None.
    """
    if reaches is None:
        reaches = [np.full(len(weights), weights.shape[1]) for weights in matrices]
    entropies = [
        normalized_entropy(weights, reach)[(reach > 1) & weights.any(axis=1)]
        for weights, reach in zip(matrices, reaches, strict=True)
    ]
    found = np.concatenate(entropies)
    return float(found.mean()) if found.size else 0.0


def _mean(values: Sequence[float]) -> float:
    """Averages the values that are not nan; 0 where all are."""
    # `np.nanmean` would warn of a list of nothing but nan, and return nan.
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else 0.0
