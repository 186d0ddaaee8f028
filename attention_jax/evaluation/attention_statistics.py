"""Attention entropy, monotonicity, EOS mass, share in gold regions: attention in numbers."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool, Float, Int

Weights = Float[np.ndarray, "T S"]


def normalized_entropy(
    weights: Weights, reach: Int[np.ndarray, "T"] | None = None
) -> Float[np.ndarray, "T"]:
    """Attention entropy: computes each step's entropy, from 0 (hard) to 1 (uniform).

    -sum_s p_ts log p_ts / log R_t,  p_ts = a_ts / sum_s a_ts

    The weights need not add up to one: beside an attention sink or under the Gaussian of local
    attention they do not.

    Args:
      weights: a, what each step attends to.
      reach: R, how many positions each step may attend to; all if None.

    Returns:
      One number for each step, 0 where it has no choice or attends to nothing.
    """
    weights = np.asarray(weights, np.float64)
    reach = np.full(len(weights), weights.shape[1]) if reach is None else reach
    total = weights.sum(axis=1, keepdims=True)  # T S -> T 1
    # Zeros are replaced before a division or logarithm, as 0 log 0 counts as 0.
    shares = weights / np.where(total > 0, total, 1.0)
    logarithms = np.log(np.where(shares > 0, shares, 1.0))
    # Adding 0 turns the -0.0 of a hard row into 0.0.
    return -(shares * logarithms).sum(axis=1) / np.log(np.maximum(reach, 2)) + 0.0


def monotonicity(weights: Weights, tolerance: float = 1e-6) -> float:
    """Monotonicity: computes the share of steps whose mean source position does not move back.

    m_t = sum_s s a_ts / sum_s a_ts;  share = |{t > 0: m_t >= m_{t-1}}| / (T - 1)

    Rows without any weight are left out. With fewer than two rows it is 1.
    """
    weights = np.asarray(weights, np.float64)
    total = weights.sum(axis=1)
    weights, total = weights[total > 0], total[total > 0]
    if len(weights) < 2:
        return 1.0
    means = weights @ np.arange(weights.shape[1]) / total  # T S -> T
    # Rounding must not turn attention that stays where it is into a step back.
    return float(np.mean(np.diff(means) >= -tolerance))


def attention_statistics(matrices: Iterable[np.ndarray]) -> dict[str, float]:
    """Attention statistics: averages entropy, monotonicity and EOS mass over sentences.

    Args:
      matrices: `T S` for each sentence without padding, EOS last on both sides.

    Returns:
      `attention_entropy`, normalised by log S, the mean over target tokens that attend to
      something; `attention_monotonicity`, over all pairs of consecutive tokens, both EOS left out;
      `attention_eos_mass`, the mean weight on the source's EOS while a token other than EOS is
      produced. Empty without sentences.
    """
    entropies: list[float] = []
    masses: list[float] = []
    rising, pairs = 0.0, 0
    for weights in matrices:
        weights = np.asarray(weights, np.float64)
        entropies.extend(normalized_entropy(weights)[weights.any(axis=1)])
        masses.extend(weights[:-1, -1])
        words = weights[:-1, :-1]
        steps = int((words.sum(axis=1) > 0).sum()) - 1
        if steps > 0:  # weighted by its steps, so that every pair of tokens counts alike
            rising, pairs = rising + steps * monotonicity(words), pairs + steps
    statistics = {}
    if entropies:
        statistics["attention_entropy"] = float(np.mean(entropies))
    if pairs:
        statistics["attention_monotonicity"] = rising / pairs
    if masses:
        statistics["attention_eos_mass"] = float(np.mean(masses))
    return statistics


def share_inside(
    pairs: Iterable[tuple[Float[np.ndarray, "T S"], Bool[np.ndarray, "U S"]]],
) -> float | None:
    """Share of attention inside gold regions: averages it over all steps that have a region.

      share = mean_t sum_s a_ts inside_ts / sum_s a_ts

    Args:
      pairs: Of each sentence its weights, and which positions are in the regions of its first U
        steps.

    Returns:
      From 0 to 1; None where no step has a region and attention.
    """
    shares = [share for pair in pairs for share in shares_inside(*pair)]
    return float(np.mean(shares)) if shares else None


def shares_inside(
    weights: Float[np.ndarray, "T S"], inside: Bool[np.ndarray, "U S"]
) -> Float[np.ndarray, " _"]:
    """Returns the share of each step that has a region and attention; see `share_inside`."""
    rows = np.asarray(weights, np.float64)[: len(inside)]
    total, within = rows.sum(axis=1), (rows * inside).sum(axis=1)
    counted = inside.any(axis=1) & (total > 0)
    return within[counted] / total[counted]
