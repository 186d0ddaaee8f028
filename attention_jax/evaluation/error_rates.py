"""Edit distance, and the phoneme and word error rates of pronunciations."""

from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.spaced_words import spaced_words


def edit_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Counts the fewest insertions, deletions and substitutions that turn one into the other."""
    previous = list(range(len(other) + 1))
    for row, item in enumerate(one, start=1):
        current = [row]
        for column, rival in enumerate(other, start=1):
            current.append(
                min(
                    previous[column] + 1,
                    current[-1] + 1,
                    previous[column - 1] + (item != rival),
                )
            )
        previous = current
    return previous[-1]


def error_rates(
    predictions: Sequence[Sequence[Hashable]],
    references: Sequence[Sequence[Sequence[Hashable]]],
) -> tuple[float, float]:
    """Computes the error rates of sequences of which several variants may be right.

    per = 100 * sum_n d(prediction_n, nearest_n) / sum_n |nearest_n|
    wer = 100 * (share of predictions that equal none of their variants)

    The nearest variant is the one with the fewest edits, of equals the one listed first.

    Args:
      predictions: A sequence of symbols for each example.
      references: All accepted sequences for each example.

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
    """Counts what `error_rates` needs of each example; sums of rows give its rates.

    Returns:
      Edits to the nearest variant, symbols of that, whether there are edits, and 1.
    """
    check_parallel(predictions, references)
    rows = []
    for prediction, variants in zip(predictions, references, strict=True):
        distance, length = min(
            ((edit_distance(prediction, variant), len(variant)) for variant in variants),
            key=lambda pair: pair[0],
        )
        rows.append((distance, length, distance > 0, 1))
    return np.array(rows, np.float64)


def pronunciation_scores(
    predictions: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Scores pronunciations with and without their stress marks.

    Args:
      predictions: One pronunciation for each word, phonemes separated by spaces.
      references: All accepted pronunciations of each word, written likewise.

    Returns:
      `per`, `wer`, `per_no_stress`, `wer_no_stress` in percent.
    """
    check_parallel(predictions, references)
    scores = {}
    for suffix, split in (("", spaced_words), ("_no_stress", _without_stress)):
        scores[f"per{suffix}"], scores[f"wer{suffix}"] = error_rates(
            [split(prediction) for prediction in predictions],
            [[split(variant) for variant in variants] for variants in references],
        )
    return scores


def check_parallel(predictions: Sequence, references: Sequence[Sequence]) -> None:
    """Raises ValueError unless there is at least one reference for each of the predictions."""
    if len(predictions) != len(references):
        raise ValueError(
            f"expected as many references as predictions, "
            f"found {len(references)} and {len(predictions)}"
        )
    if not predictions:
        raise ValueError("expected at least one prediction, found none")
    for index, variants in enumerate(references):
        if isinstance(variants, str) or not variants:
            raise ValueError(f"references[{index}]: expected a list of texts, found {variants!r}")


def _without_stress(pronunciation: str) -> list[str]:
    return [phoneme.rstrip("0123456789") for phoneme in spaced_words(pronunciation)]
