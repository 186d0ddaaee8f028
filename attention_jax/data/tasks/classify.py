"""Document classification: the label of a text of sentences, judged by accuracy and F1."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attention_jax.data.config import DataConfig
from attention_jax.data.decoded import DecodedSplit, Gathered, Scores
from attention_jax.data.documents import (
    DOCUMENT,
    LABEL,
    MOST_CHARACTERS,
    in_document_order,
    read_text,
)
from attention_jax.data.examples import Split
from attention_jax.data.task import Metric, Statistics, Task, prepare
from attention_jax.evaluation.classification import (
    classification_scores,
    is_right,
    scores_by_label,
)
from attention_jax.evaluation.rationales import best_words, rationale_scores, words_of

_F1, _MEASURES = "f1_label_", ("precision", "recall", "documents")


def prepare_document(text: str, data_config: DataConfig, *, is_source: bool = True) -> str:
    """Brings a user's text, whose sentences are found in it, or a label into the form of the data.

    Raises:
      DataError: If a text is not blank and has no sentence, or is too long.
    """
    text = prepare(text, data_config)
    return read_text(text, data_config, "text") if is_source and text.strip() else text


def scores(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Scores:
    """Computes accuracy and macro F1."""
    return dict(classification_scores(outputs, split.targets))


def label_scores(decoded: DecodedSplit) -> Scores:
    """Computes the F1 of each label, with precision, recall and the number of its documents.

    Returns:
      `f1_label_LABEL`, and `f1_label_LABEL_precision`, `_recall` and `_documents`.
    """
    found: Scores = {}
    for label, score in scores_by_label(decoded.texts, decoded.split.targets).items():
        found[f"{_F1}{label}"] = score.f1
        values = score.precision, score.recall, float(score.number)
        names = [f"{_F1}{label}_{measure}" for measure in _MEASURES]
        found |= dict(zip(names, values, strict=True))
    return found


def table(metrics: Mapping[str, Any]) -> list[str]:
    """Returns a line for each label: how many documents it has, and how well it is told."""
    labels = [
        name.removeprefix(_F1)
        for name in metrics
        if name.startswith(_F1) and f"{name}_documents" in metrics
    ]
    if not labels:
        return []
    width = max(len("label"), *map(len, labels))
    lines = [f"  {'label':<{width}}  documents  precision  recall     f1"]
    for label in labels:
        precision, recall, number = (metrics[f"{_F1}{label}_{each}"] for each in _MEASURES)
        f1 = metrics[f"{_F1}{label}"]
        lines.append(
            f"  {label:<{width}}  {number:>9.0f}  {precision:>9.2f}  {recall:>6.2f}  {f1:>5.2f}"
        )
    return lines


def statistics(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Statistics:
    """Returns which documents are right, and how the accuracy follows from their sum."""
    right = is_right(outputs, split.targets)
    rows = np.stack([right, np.ones_like(right)], axis=-1)
    return {"label_accuracy": (rows, lambda sums: 100 * sums[..., 0] / sums[..., 1])}


def word_weights(split: Split, gathered: Gathered) -> list[np.ndarray]:
    """Returns the weight of each word of a document: its share of its sentence times the latter's.

    Args:
      split: The documents.
      gathered: Of each, `word_weights` and `sentence_weights`.
    """
    pairs = zip(gathered["word_weights"], gathered["sentence_weights"], strict=True)
    return in_document_order(split, [words * of[:, None] for words, of in pairs])


def weighted_words(decoded: DecodedSplit) -> Scores:
    """Compares the words of the largest weights with the evidence, where people have marked it.

    Returns:
      `attention_token_f1` and `attention_iou_f1` of as many words as, on average, are evidence, and
      `attention_precision_5`, `_10` and `_20` of so many per cent of the words.
    """
    evidence = decoded.split.extras.get("evidence")
    if not evidence or not decoded.gathered:
        return {}
    weights = word_weights(decoded.split, decoded.gathered)
    marked = [words_of(spans, len(values)) for spans, values in zip(evidence, weights, strict=True)]
    share = float(np.mean([words.mean() for words in marked]))

    def best(share: float) -> dict[str, float]:
        return rationale_scores([best_words(values, share) for values in weights], evidence)

    found: Scores = {f"attention_{name}": best(share)[name] for name in ("token_f1", "iou_f1")}
    for percent in (5, 10, 20):
        found[f"attention_precision_{percent}"] = best(percent / 100)["token_precision"]
    return found


METRICS = (
    Metric("label_accuracy", "accuracy", "documents (%)", "max"),
    Metric("macro_f1", "macro F1", "documents (%)", "max"),
)
TASK = Task(
    label="classification",
    fields=(DOCUMENT, LABEL),
    source_form="document",
    longest_text=MOST_CHARACTERS,
    has_labels=True,
    prepare=prepare_document,
    scores=scores,
    details=(label_scores, weighted_words),
    statistics=statistics,
    metrics=METRICS,
    printed=("label_accuracy",),
    shown=("label_accuracy", "macro_f1"),
    table=table,
    gathers=("word_weights", "sentence_weights"),
    page="documents",
)
