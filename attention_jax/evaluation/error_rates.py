"""Phoneme and word error rate (PER, WER) of pronunciations, and the edit distance below them."""

from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.spaced_words import spaced_words


def edit_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Edit distance (Levenshtein): counts the fewest insertions, deletions and substitutions."""
    # The dynamic program needs two rows of its table: previous[j] is the distance between the items
    # read so far and the first j of `other`.
    previous = list(range(len(other) + 1))
    for row, item in enumerate(one, start=1):
        current = [row]
        for column, rival in enumerate(other, start=1):
            current.append(
                min(
                    previous[column] + 1,  # deletion of the item
                    current[-1] + 1,  # insertion of its rival
                    previous[column - 1] + (item != rival),
                )
            )
        previous = current
    return previous[-1]


def error_rates(
    predictions: Sequence[Sequence[Hashable]],
    references: Sequence[Sequence[Sequence[Hashable]]],
) -> tuple[float, float]:
    """Phoneme and word error rate: scores sequences, each against several accepted variants.

    per = 100 * sum_n d(prediction_n, nearest_n) / sum_n |nearest_n|
    wer = 100 * (share of predictions that equal none of their variants)

    The nearest variant is the one with the fewest edits; among equals, the one listed first.

    Returns:
      (per, wer) in percent.

    Raises:
      ValueError: If the lists are empty or of unequal length, or an example has no reference.
    """
    edits, symbols, wrong, number = error_counts(predictions, references).sum(axis=0)
    return float(100 * edits / max(symbols, 1)), float(100 * wrong / number)


def error_counts(
    predictions: Sequence[Sequence[Hashable]],
    references: Sequence[Sequence[Sequence[Hashable]]],
) -> Float[np.ndarray, "N 4"]:
    """Sufficient statistics of error rates: counts edits of each example; rows may be summed.

    Returns:
      Edits to the nearest variant, its number of symbols, 1 if there are edits, and 1.
    """
    check_parallel(predictions, references)
    rows = []
    for prediction, variants in zip(predictions, references, strict=True):
        distance, length = min(
            ((edit_distance(prediction, variant), len(variant)) for variant in variants),
            key=lambda pair: pair[0],  # edits alone: `min` then keeps the first of equals
        )
        rows.append((distance, length, distance > 0, 1))
    return np.array(rows, np.float64)


def pronunciation_scores(
    predictions: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Phoneme and word error rate: scores pronunciations with and without their stress marks.

    Args:
      predictions: One pronunciation for each word, phonemes separated by spaces.
      references: All accepted pronunciations of each word.

    Returns:
      `per` and `wer`, in percent, and where phonemes of the references end in digits, which mark
      stress, also `per_no_stress` and `wer_no_stress`.
    """
    check_parallel(predictions, references)
    splits = {"": spaced_words}
    if any(_without_stress(one) != spaced_words(one) for each in references for one in each):
        splits["_no_stress"] = _without_stress
    scores = {}
    for suffix, split in splits.items():
        scores[f"per{suffix}"], scores[f"wer{suffix}"] = error_rates(
            [split(prediction) for prediction in predictions],
            [[split(variant) for variant in variants] for variants in references],
        )
    return scores


def check_parallel(predictions: Sequence, references: Sequence[Sequence]) -> None:
    """Raises ValueError unless there are predictions and each has at least one reference."""
    if len(predictions) != len(references):
        raise ValueError(
            f"expected as many references as predictions, "
            f"found {len(references)} and {len(predictions)}"
        )
    if not predictions:
        raise ValueError("expected at least one prediction, found none")
    for index, variants in enumerate(references):
        # A bare text would pass for a list of references of one character each.
        if isinstance(variants, str) or not variants:
            raise ValueError(f"references[{index}]: expected a list of texts, found {variants!r}")


def _without_stress(pronunciation: str) -> list[str]:
    return [phoneme.rstrip("0123456789") for phoneme in spaced_words(pronunciation)]
