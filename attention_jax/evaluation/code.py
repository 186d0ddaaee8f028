"""Exact match of programs, and recall of the words of theirs that are in question."""

import collections
from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.error_rates import check_parallel


def match_counts(
    outputs: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]
) -> Float[np.ndarray, "N 2"]:
    """Counts whether each output is one of its references, and 1; sums of rows give exact match.

    Args:
      outputs: The words of each.
      references: The words of all accepted outputs of each.

    Raises:
      ValueError: If the lists are empty or of unequal length, or an example has no reference.
    """
    check_parallel(outputs, references)
    rows = np.ones((len(outputs), 2))
    for row, output, accepted in zip(rows, outputs, references, strict=True):
        row[0] = any(list(output) == list(one) for one in accepted)
    return rows


def matched(counts: Float[np.ndarray, "*N 2"]) -> float | Float[np.ndarray, "*N"]:
    """Exact match: returns the share of right outputs, in percent, given sums of counts."""
    return 100 * counts[..., 0] / counts[..., 1]


def recall_counts(
    outputs: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    known: Collection[str],
) -> Float[np.ndarray, "N 2"]:
    """Counts the words of each reference that are not known: those that its output has, and all.

    A word that a reference has twice counts twice, and is found as often as the output has it.

    Args:
      outputs: The words of each.
      references: The words of the first reference of each.
      known: Words that are not in question, such as those of a vocabulary.
    """
    rows = np.zeros((len(outputs), 2))
    for row, output, reference in zip(rows, outputs, references, strict=True):
        wanted = collections.Counter(word for word in reference if word not in known)
        row[:] = (wanted & collections.Counter(output)).total(), wanted.total()
    return rows


def recall(counts: Float[np.ndarray, "*N 2"]) -> float | Float[np.ndarray, "*N"]:
    """Recall of words, in percent, given sums of counts; 0 where no word is in question."""
    return 100 * counts[..., 0] / np.maximum(counts[..., 1], 1)
