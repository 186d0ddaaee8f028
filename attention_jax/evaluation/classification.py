"""Classification: accuracy, and precision, recall and F1 of every label."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class LabelScore(NamedTuple):
    """How well one label is told, in per cent.

    Attributes:
      precision: Share of what was told to have it that has it; 0 where nothing was.
      recall: Share of what has it that was told so; 0 where nothing has.
      f1: Their harmonic mean, 0 where both are 0.
      number: How many have it.
    """

    precision: float
    recall: float
    f1: float
    number: int


def is_right(outputs: Sequence[str], labels: Sequence[str]) -> Float[np.ndarray, " N"]:
    """Returns 1 for each output that is the label, and 0 for every other."""
    return np.array([a == b for a, b in zip(outputs, labels, strict=True)], float)


def scores_by_label(outputs: Sequence[str], labels: Sequence[str]) -> dict[str, LabelScore]:
    """Precision, recall and F1: computes them for each label that was given or told.

      precision = right / told;   recall = right / given;   F1 = 2 right / (told + given)

    Args:
      outputs: What was told.
      labels: What is so.
    """
    pairs = list(zip(outputs, labels, strict=True))
    found = {}
    for label in sorted({*outputs, *labels}):
        right = sum(one == other == label for one, other in pairs)
        told, given = sum(one == label for one, _ in pairs), sum(b == label for _, b in pairs)
        found[label] = LabelScore(
            100 * right / max(told, 1), 100 * right / max(given, 1),
            100 * 2 * right / (told + given), given,
        )  # fmt: skip
    return found


def classification_scores(outputs: Sequence[str], labels: Sequence[str]) -> dict[str, float]:
    """Accuracy and macro F1: computes both, in per cent.

    Returns:
      `label_accuracy`, and `macro_f1`, the mean F1 of the labels that there are.
    """
    by_label = scores_by_label(outputs, labels)
    given = [score.f1 for score in by_label.values() if score.number]
    right = is_right(outputs, labels)
    return {
        "label_accuracy": 100 * float(right.mean()) if len(right) else 0.0,
        "macro_f1": float(np.mean(given)) if given else 0.0,
    }
