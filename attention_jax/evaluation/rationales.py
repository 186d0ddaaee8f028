"""Rationales against what people marked: token F1, IOU F1, and precision at a share of the words.

Definitions are those of the ERASER benchmark (DeYoung et al. 2020, section 4.1, and its program,
`rationale_benchmark/metrics.py`, which decides what is counted of documents without evidence).
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

Span = tuple[int, int]
Ratio = np.ndarray | float
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


def best_words(weights: Float[np.ndarray, " S"], share: float) -> Bool[np.ndarray, " S"]:
    """Returns that share of the words which has the largest weights, the first of equal ones."""
    found = np.zeros(len(weights), bool)
    number = round(share * len(weights))
    found[np.argsort(-np.asarray(weights), kind="stable")[:number]] = True
    return found


def rationale_counts(
    selected: Sequence[Bool[np.ndarray, " _"]], evidence: Sequence[Sequence[Span]]
) -> Float[np.ndarray, "N 7"]:
    """Sufficient statistics: counts words and spans of each document, which all scores follow from.

    Args:
      selected: Which words of each document are selected.
      evidence: The spans that people marked in each; one without a word counts, and none finds it.

    Returns:
      Of words, those selected and marked, selected, marked, and all. Of spans, selected ones whose
      overlap with a marked one is at least half of their union, selected, and marked.
    """
    rows = []
    for chosen, spans in zip(selected, evidence, strict=True):
        marked, own, theirs = words_of(spans, len(chosen)), spans_of(chosen), set(spans)
        right = sum(any(overlap(one, other) >= MATCH for other in theirs) for one in own)
        words = (chosen & marked).sum(), chosen.sum(), marked.sum(), len(chosen)
        rows.append([*words, right, len(own), len(theirs)])
    return np.array(rows, float).reshape(-1, 7)


def document_scores(counts: Float[np.ndarray, "*N 7"]) -> Float[np.ndarray, "*N 11"]:
    """Computes of each document what `scores_of_sums` takes means of, by its `rationale_counts`.

    Returns:
      Precision, recall and F1 of words, and whether any is selected or marked; precision of spans,
      and whether there is one; recall of spans, and whether any is marked; words selected, marked,
      and all.
    """
    both, chosen, marked, words, right, own, theirs = np.moveaxis(counts, -1, 0)
    columns = (
        _ratio(both, chosen), _ratio(both, marked), _ratio(2 * both, chosen + marked),
        chosen + marked > 0, _ratio(right, own), own > 0, _ratio(right, theirs), theirs > 0,
        chosen, marked, words,
    )  # fmt: skip
    return np.stack(columns, axis=-1).astype(float)


def scores_of_sums(sums: Float[np.ndarray, "*R 11"]) -> dict[str, Ratio]:
    """Token F1, IOU F1: computes them from sums of `document_scores`, as in `rationale_scores`."""
    precision, recall, token_f1, judged, *spans, chosen, marked, words = np.moveaxis(sums, -1, 0)
    span_precision, selecting, span_recall, evident = spans
    return {
        "token_f1": 100 * _ratio(token_f1, judged),
        "token_precision": 100 * _ratio(precision, judged),
        "token_recall": 100 * _ratio(recall, judged),
        "iou_f1": 100 * f1(_ratio(span_precision, selecting), _ratio(span_recall, evident)),
        "selected_share": 100 * _ratio(chosen, words),
        "evidence_share": 100 * _ratio(marked, words),
    }


def rationale_scores(
    selected: Sequence[Bool[np.ndarray, " _"]], evidence: Sequence[Sequence[Span]]
) -> dict[str, float]:
    """Token F1 and IOU F1: compares selections with the evidence that people marked, in per cent.

    Token F1 is the mean over documents of the F1 of their words, 0 where words are selected and
    none is marked, or the other way round; a document with neither is left out. IOU F1 is the F1 of
    the mean precision of spans, of documents that have a selected one, and their mean recall, of
    documents that have a marked one.

    Args:
      selected: Which words of each document are selected.
      evidence: The spans that were marked in each.

    Returns:
      `token_f1`, `token_precision`, `token_recall` (means over documents), `iou_f1`,
      `selected_share` and `evidence_share`, of all words.
    """
    sums = document_scores(rationale_counts(selected, evidence)).sum(axis=0)
    return {name: float(score) for name, score in scores_of_sums(sums).items()}


def overlap(one: Span, other: Span) -> float:
    """Intersection over union of two spans, in words."""
    both = max(min(one[1], other[1]) - max(one[0], other[0]), 0)
    return both / (one[1] - one[0] + other[1] - other[0] - both)


def f1(precision: Ratio, recall: Ratio) -> Ratio:
    """Harmonic mean; 0 where either is 0."""
    return _ratio(2 * precision * recall, precision + recall)


def _ratio(part: Ratio, whole: Ratio) -> Ratio:
    """Divides a part by its whole; 0 where there is nothing."""
    return part / np.maximum(whole, 1e-12)
