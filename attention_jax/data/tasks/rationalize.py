"""Rationales: the label of a document, and the words of it that tell the label.

The data are those of the task `classify`. Where people have marked evidence, what is selected is
compared with it.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attention_jax.data.decoded import DecodedSplit, Gathered, Scores
from attention_jax.data.documents import in_document_order
from attention_jax.data.examples import Split
from attention_jax.data.task import Statistics
from attention_jax.data.tasks import classify
from attention_jax.evaluation.rationales import (
    document_scores,
    rationale_counts,
    rationale_scores,
    scores_of_sums,
)

_TESTED = ("token_f1", "token_precision", "iou_f1")
_LITTLE, _MUCH = 0.5, 99.5  # per cent of the words, beyond which nothing or everything is selected


def selections(split: Split, gathered: Gathered) -> list[np.ndarray]:
    """Returns which words of each document are selected, by its gathered `rationale`."""
    return [values > 0 for values in in_document_order(split, gathered["rationale"])]


def selected_words(decoded: DecodedSplit) -> Scores:
    """Computes the share of selected words and, beside evidence, what is right of them."""
    if not decoded.gathered:
        return {}
    selected = selections(decoded.split, decoded.gathered)
    evidence = decoded.split.extras.get("evidence")
    scores = rationale_scores(selected, evidence or [()] * len(selected))
    return dict(scores) if evidence else {"selected_share": scores["selected_share"]}


def selection_statistics(decoded: DecodedSplit) -> Statistics:
    """Sufficient statistics: returns those of what is right of selected words, beside evidence."""
    evidence = decoded.split.extras.get("evidence")
    if not evidence or not decoded.gathered:
        return {}
    counts = rationale_counts(selections(decoded.split, decoded.gathered), evidence)
    return {name: (document_scores(counts), _score(name)) for name in _TESTED}


def _score(name: str) -> Callable[[np.ndarray], np.ndarray]:
    return lambda sums: scores_of_sums(sums)[name]


def table(metrics: Mapping[str, Any]) -> list[str]:
    """Returns the lines of the labels, and one that names a selection of nothing or everything."""
    lines, share = classify.table(metrics), metrics.get("selected_share")
    if share is not None and not _LITTLE <= share <= _MUCH:
        what, remedy = ("all words", "raise") if share > _MUCH else ("no words", "lower")
        lines.append(
            f"  collapsed: {what} are selected ({share:.2f} %); {remedy} "
            "config.objectives.rationale.sparsity, or give a target_share beside it"
        )
    return lines


TASK = dataclasses.replace(
    classify.TASK,
    label="rationales",
    shown=(*classify.TASK.shown, "selected_share", "token_f1", "iou_f1", "token_precision"),
    details=(classify.label_scores, selected_words),
    detail_statistics=selection_statistics,
    table=table,
    gathers=(*classify.TASK.gathers, "rationale"),
)
