"""Rationales: the label of a document, and the words of it that tell the label.

The data are those of the task `classify`. Where people have marked evidence, what is selected is
compared with it.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from attention_jax.data.decoded import DecodedSplit, Scores
from attention_jax.data.documents import in_document_order
from attention_jax.data.tasks import classify
from attention_jax.evaluation.rationales import rationale_scores

_LITTLE, _MUCH = 0.5, 99.5  # per cent of the words, beyond which nothing or everything is selected


def selected_words(decoded: DecodedSplit) -> Scores:
    """Computes the share of selected words and, beside evidence, what is right of them."""
    if not decoded.gathered:
        return {}
    rationales = in_document_order(decoded.split, decoded.gathered["rationale"])
    selected = [values > 0 for values in rationales]
    evidence = decoded.split.extras.get("evidence")
    scores = rationale_scores(selected, evidence or [()] * len(selected))
    return dict(scores) if evidence else {"selected_share": scores["selected_share"]}


def table(metrics: Mapping[str, Any]) -> list[str]:
    """Returns the lines of the labels, and one that names a selection of nothing or everything."""
    lines, share = classify.table(metrics), metrics.get("selected_share")
    if share is not None and not _LITTLE <= share <= _MUCH:
        what, remedy = ("all words", "raise") if share > _MUCH else ("no words", "lower")
        lines.append(
            f"  collapsed: {what} are selected ({share:.2f} %); {remedy} "
            "config.objectives.rationale.sparsity"
        )
    return lines


TASK = dataclasses.replace(
    classify.TASK,
    label="rationales",
    shown=(*classify.TASK.shown, "selected_share", "token_f1", "iou_f1", "token_precision"),
    details=(classify.label_scores, selected_words),
    table=table,
    gathers=(*classify.TASK.gathers, "rationale"),
)
