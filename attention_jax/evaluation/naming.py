"""Names as sub-tokens: F1 and exact match, of the best suggestion and of the best among several."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.spaced_words import spaced_words

RANKS = (1, 5)


def subtoken_f1(suggestion: str, name: str) -> float:
    """F1 of sub-tokens, which count as often as they are there, in any order.

      F1 = 2 * common / (number in the suggestion + number in the name)

    Args:
      suggestion: Sub-tokens that spaces separate; of none, F1 is 0.
      name: Those of the right name.

    Returns:
      From 0 to 1.
    """
    found, wanted = Counter(spaced_words(suggestion)), Counter(spaced_words(name))
    common = (found & wanted).total()
    return 2 * common / (found.total() + wanted.total()) if common else 0.0


def naming_counts(
    suggestions: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
) -> Float[np.ndarray, "N 5"]:
    """Measures what `naming_scores` are means of, for each function.

    Args:
      suggestions: Names for each function, best first.
      references: Its right names; the nearest counts.

    Returns:
      F1 and exact match among the first suggestion, the same among the first five, and 1.
    """
    rows = []
    for names, right in zip(suggestions, references, strict=True):
        row: list[float] = []
        for rank in RANKS:
            first = names[:rank]
            row.append(max((subtoken_f1(name, one) for name in first for one in right), default=0))
            exact = {tuple(spaced_words(one)) for one in right}
            row.append(float(any(tuple(spaced_words(name)) in exact for name in first)))
        rows.append([*row, 1.0])
    return np.array(rows, float).reshape(-1, 2 * len(RANKS) + 1)


def naming_scores(
    suggestions: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Scores suggested names.

    Returns:
      In percent, `f1` and `exact_match` of the first suggestion, and `f1_rank_5` and
      `exact_match_rank_5`, of the best among the first five.

    Raises:
      ValueError: If there is none.

    Source:
      Allamanis, Peng and Sutton (2016), section 4.1: the mean over functions of F1 at a rank.
    """
    counts = naming_counts(suggestions, references)
    if not len(counts):
        raise ValueError("expected at least one function, found none")
    f1, exact, f1_5, exact_5, _ = 100 * counts.mean(axis=0)
    found = {"f1": f1, "exact_match": exact, "f1_rank_5": f1_5, "exact_match_rank_5": exact_5}
    return {name: float(value) for name, value in found.items()}
