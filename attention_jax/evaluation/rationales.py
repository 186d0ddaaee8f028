"""Rationales against what people marked: token F1, IOU F1, and precision at a share of the words.

Definitions are those of the ERASER benchmark (DeYoung et al. 2020, section 4.1, and its program).
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

Span = tuple[int, int]
MATCH = 0.5  # the overlap, of the union of two spans, from which on they match


def spans_of(selected: Bool[np.ndarray, " S"]) -> list[Span]:
    """Returns the runs of selected words as (first, one after the last)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], selected.astype(np.int8), [0]])))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def words_of(spans: Sequence[Span], size: int) -> Bool[np.ndarray, " {size}"]:
    """Returns which words of a document are in any span."""
    found = np.zeros(size, bool)
    for first, end in spans:
        found[first:end] = True
    return found


def best_words(weights: Float[np.ndarray, " S"], number: int) -> Bool[np.ndarray, " S"]:
    """Returns the words of the largest weights, the first of equal ones."""
    found = np.zeros(len(weights), bool)
    found[np.argsort(-np.asarray(weights), kind="stable")[:number]] = True
    return found


def rationale_scores(
    selected: Sequence[Bool[np.ndarray, " _"]], evidence: Sequence[Sequence[Span]]
) -> dict[str, float]:
    """Token F1 and IOU F1: compares selections with the evidence that people marked, in per cent.

    Token F1 is the mean over documents of the F1 of their words. For IOU F1 a selected span counts
    as right if its overlap with a marked one is at least half of their union; it is the F1 of the
    mean precision and the mean recall of documents.

    Args:
      selected: Which words of each document are selected.
      evidence: The spans that were marked in each; of documents without any nothing is measured.

    Returns:
      `token_f1`, `token_precision`, `token_recall` (means over documents), `iou_f1`,
      `selected_share` and `evidence_share`, of all words.
    """
    rows, words = [], np.zeros(3)
    for chosen, spans in zip(selected, evidence, strict=True):
        marked = words_of(spans, len(chosen))
        words += chosen.sum(), marked.sum(), len(chosen)
        if not marked.any():
            continue
        both = float((chosen & marked).sum())
        precision, recall = both / max(chosen.sum(), 1), both / marked.sum()
        # Of spans, once each; a document of which nothing is selected has no precision.
        own, theirs = spans_of(chosen), set(spans)
        right = sum(any(overlap(one, other) >= MATCH for other in theirs) for one in own)
        iou_precision = right / len(own) if own else np.nan
        rows.append([precision, recall, f1(precision, recall), iou_precision, right / len(theirs)])
    table = np.array(rows).reshape(-1, 5)
    means = [float(np.mean(known)) if len(known := column[~np.isnan(column)]) else 0.0
             for column in table.T]  # fmt: skip
    chosen, marked, number = words / max(words[2], 1) * 100
    return {
        "token_f1": 100 * means[2], "token_precision": 100 * means[0],
        "token_recall": 100 * means[1], "iou_f1": 100 * f1(means[3], means[4]),
        "selected_share": float(chosen), "evidence_share": float(marked),
    }  # fmt: skip


def overlap(one: Span, other: Span) -> float:
    """Intersection over union of two spans, in words."""
    both = max(min(one[1], other[1]) - max(one[0], other[0]), 0)
    return both / (one[1] - one[0] + other[1] - other[0] - both)


def f1(precision: float, recall: float) -> float:
    """Harmonic mean; 0 where either is 0."""
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0
