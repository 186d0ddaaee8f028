"""Over- and under-translation, as far as attention tells: how often each source word is covered.

A weight matrix here is `T S` between words: a row for each output word, without the step that
writes EOS, and a column for each source word. What a step gives to the source's EOS is left out
and not made up for, since it covers no word; a row may therefore sum to less than 1.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.alignment import Members, merge_pieces

Weights = Float[np.ndarray, "T S"]
Fertility = Float[np.ndarray, " S"]

DROPPED_BELOW, REPEATED_ABOVE = 0.5, 1.5


def covering_weights(
    weights: Weights, source_words: Members, target_words: Members
) -> Float[np.ndarray, "words_T words_S"]:
    """Returns how much of a source word each word of an output covers.

    Subwords are joined to words as `merge_pieces` does; the step that writes EOS, and what falls on
    the source's EOS, are left out, and rows are not made to sum to 1.

    Args:
      weights: The attention while the output is written, between tokens, EOS included.
      source_words: The tokens of each word of its source, without EOS.
      target_words: Those of its own words.
    """
    weights = np.asarray(weights, np.float64)[:-1, :-1]
    if 0 in weights.shape:
        # Without words on one side the others are covered by nothing.
        return np.zeros((len(target_words), len(source_words)))
    return merge_pieces(weights, source_words, target_words)


def fertility(weights: Weights) -> Fertility:
    """Computes how many output words' worth of attention each source word gets.

    f_j = sum_i weights[i, j]

    Source:
      Tu, Lu, Liu, Liu and Li (2016), on coverage, at the end of the output.
    """
    return np.asarray(weights, np.float64).sum(axis=0)


def dropped_share(fertilities: Fertility, threshold: float = DROPPED_BELOW) -> float:
    """Returns the share of source words with f_j < threshold; 0 without words."""
    return float(np.mean(fertilities < threshold)) if len(fertilities) else 0.0


def repeated_share(fertilities: Fertility, threshold: float = REPEATED_ABOVE) -> float:
    """Returns the share of source words with f_j > threshold; 0 without words."""
    return float(np.mean(fertilities > threshold)) if len(fertilities) else 0.0


def excess_mass(fertilities: Fertility) -> float:
    """Computes the attention that falls on words beyond once: sum_j max(f_j - 1, 0)."""
    return float(np.maximum(fertilities - 1, 0).sum())


def coverage_deviation(fertilities: Fertility) -> float:
    """Computes how far words are from being covered once: mean_j |1 - f_j|; 0 without words."""
    return float(np.abs(1 - fertilities).mean()) if len(fertilities) else 0.0


def fertility_scores(matrices: Sequence[Float[np.ndarray, "_T _S"]]) -> dict[str, float]:
    """Computes what attention tells of over- and under-translation, over all source words.

    Args:
      matrices: Weights of each sentence between words, without EOS.

    Returns:
      In percent of the source words: `dropped_source` (f < 0.5) and `repeated_source` (f > 1.5).
      In target words a source word: `coverage_excess`, the mean of max(f - 1, 0), and
      `coverage_deviation`, the mean of |1 - f|. Empty without source words.
    """
    everything = np.concatenate([np.zeros(0), *map(fertility, matrices)])
    if not len(everything):
        return {}
    return {
        "dropped_source": 100 * dropped_share(everything),
        "repeated_source": 100 * repeated_share(everything),
        "coverage_excess": excess_mass(everything) / len(everything),
        "coverage_deviation": coverage_deviation(everything),
    }
