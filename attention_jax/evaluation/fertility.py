"""Fertility and coverage: over- and under-translation as seen in the attention to source words.

A weight matrix here is `T S` between words: a row for each output word, without the step that
writes EOS, and a column for each source word. Attention to the source's EOS covers no word; it is
left out without renormalising, so a row may sum to less than 1.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.alignment import Members, merge_pieces

Weights = Float[np.ndarray, "T S"]
Fertility = Float[np.ndarray, " S"]

# A word is covered once, give or take half an output word.
DROPPED_BELOW, REPEATED_ABOVE = 0.5, 1.5


def covering_weights(
    weights: Weights, source_words: Members, target_words: Members
) -> Float[np.ndarray, "words_T words_S"]:
    """Coverage: turns attention between tokens into how much each output word covers source words.

    Subwords are joined to words by `merge_pieces`. Both EOS, and tokens of no word, are left out
    without renormalising.

    Args:
      weights: The attention while the output was written, between tokens, EOS last on both sides.
      source_words: The tokens of each source word.
      target_words: The tokens of each output word.
    """
    # STEPs, and symbols with which all texts begin, are tokens of no word.
    rows, columns = (sorted(set().union(*words)) for words in (target_words, source_words))
    weights = np.asarray(weights, np.float64)[np.ix_(rows, columns)]
    if 0 in weights.shape:
        # With an empty side there is nothing to merge, and nothing covers the words of the other.
        return np.zeros((len(target_words), len(source_words)))
    return merge_pieces(weights, _numbered(source_words, columns), _numbered(target_words, rows))


def _numbered(words: Members, tokens: Sequence[int]) -> list[list[int]]:
    """Returns the words' tokens by their places among those that are left."""
    place = {token: number for number, token in enumerate(tokens)}
    return [[place[token] for token in word] for word in words]


def fertility(weights: Weights) -> Fertility:
    """Fertility: sums the attention that each source word gets, in output words.

    f_j = sum_i weights[i, j]

    Source:
      Tu, Lu, Liu, Liu and Li (2016), on coverage, at the end of the output.
    """
    return np.asarray(weights, np.float64).sum(axis=0)


def dropped_share(fertilities: Fertility, threshold: float = DROPPED_BELOW) -> float:
    """Under-translation: returns the share of source words with f_j < threshold; 0 without any."""
    return float(np.mean(fertilities < threshold)) if len(fertilities) else 0.0


def repeated_share(fertilities: Fertility, threshold: float = REPEATED_ABOVE) -> float:
    """Over-translation: returns the share of source words with f_j > threshold; 0 without any."""
    return float(np.mean(fertilities > threshold)) if len(fertilities) else 0.0


def excess_mass(fertilities: Fertility) -> float:
    """Over-translation: sums the fertility of words beyond one, sum_j max(f_j - 1, 0)."""
    return float(np.maximum(fertilities - 1, 0).sum())


def coverage_deviation(fertilities: Fertility) -> float:
    """Coverage deviation: averages how far fertilities are from one, mean_j |1 - f_j|; or 0."""
    return float(np.abs(1 - fertilities).mean()) if len(fertilities) else 0.0


def fertility_scores(matrices: Sequence[Float[np.ndarray, "_T _S"]]) -> dict[str, float]:
    """Over- and under-translation: summarises the fertilities of all source words of a corpus.

    Returns:
      In percent of the source words: `dropped_source` (f < 0.5) and `repeated_source` (f > 1.5).
      In output words per source word: `coverage_excess`, the mean of max(f - 1, 0), and
      `coverage_deviation`, the mean of |1 - f|. Empty without source words.
    """
    # The empty array lets the list of sentences be empty.
    everything = np.concatenate([np.zeros(0), *map(fertility, matrices)])
    if not len(everything):
        return {}
    return {
        "dropped_source": 100 * dropped_share(everything),
        "repeated_source": 100 * repeated_share(everything),
        "coverage_excess": excess_mass(everything) / len(everything),
        "coverage_deviation": coverage_deviation(everything),
    }
