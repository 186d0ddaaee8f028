"""Exact match and edit distance of inflected forms, of all and of those with each tag."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.error_rates import error_counts


class TagScore(NamedTuple):
    """The forms with a tag.

    Attributes:
      words: How many there are.
      exact_match: How many of them are right, in percent.
    """

    words: int
    exact_match: float


def inflection_counts(
    outputs: Sequence[str], references: Sequence[Sequence[str]]
) -> Float[np.ndarray, "N 3"]:
    """Counts what `inflection_scores` needs of each form; sums of rows give its scores.

    Args:
      outputs: A form for each example.
      references: All accepted forms of each.

    Returns:
      Whether the output is one of the accepted, edits to the nearest of them, and 1.

    Raises:
      ValueError: If the lists are empty or of unequal length, or an example has no reference.
    """
    edits, _, is_wrong, one = error_counts(outputs, references).T
    return np.stack([1 - is_wrong, edits, one], axis=-1)


def inflection_scores(
    outputs: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Scores inflected forms.

    exact_match = 100 * (share of forms that are right);   edit_distance = mean of d(form, nearest)

    Edits insert, delete or replace one Unicode character.

    Args:
      outputs: A form for each example.
      references: All accepted forms of each.

    Returns:
      `exact_match`, in percent, and `edit_distance`, in characters.

    Source:
      Cotterell et al. (2017), CoNLL-SIGMORPHON, section 2; the organisers' `evalm.py`, which rounds
      to two digits.
    """
    counts = inflection_counts(outputs, references).sum(axis=0)
    found = {"exact_match": exact_match(counts), "edit_distance": edit_distance(counts)}
    return {name: float(value) for name, value in found.items()}


def exact_match(counts: Float[np.ndarray, "*N 3"]) -> float | Float[np.ndarray, "*N"]:
    """Returns the share of right forms, in percent, given sums of counts."""
    return 100 * counts[..., 0] / counts[..., 2]


def edit_distance(counts: Float[np.ndarray, "*N 3"]) -> float | Float[np.ndarray, "*N"]:
    """Returns the mean number of edits, given sums of counts."""
    return counts[..., 1] / counts[..., 2]


def scores_by_tag(
    outputs: Sequence[str],
    references: Sequence[Sequence[str]],
    tags: Sequence[Collection[str]],
) -> Mapping[str, TagScore]:
    """Scores the forms with each tag, of the parts of speech as of their features.

    Args:
      outputs: A form for each example.
      references: All accepted forms of each.
      tags: Those of each.

    Returns:
      For each tag how many forms have it and how many of them are right; the most frequent first.
    """
    is_right = inflection_counts(outputs, references)[:, 0]
    found: dict[str, list[float]] = {}
    for right, of_form in zip(is_right, tags, strict=True):
        for tag in dict.fromkeys(of_form):
            found.setdefault(tag, []).append(float(right))
    ranked = sorted(found, key=lambda tag: (-len(found[tag]), tag))
    return {tag: TagScore(len(found[tag]), 100 * float(np.mean(found[tag]))) for tag in ranked}
