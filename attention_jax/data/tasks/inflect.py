"""Morphological inflection: the form of a lemma that has given tags, judged by exact match."""

from collections.abc import Mapping, Sequence
from typing import Any

from attention_jax.data.config import DataConfig
from attention_jax.data.decoded import DecodedSplit, Scores
from attention_jax.data.examples import Split
from attention_jax.data.inflection import checked_source
from attention_jax.data.task import Metric, Statistics, Task, prepare
from attention_jax.data.tasks.translate import attention_scores
from attention_jax.data.text.symbol_kinds import BETWEEN_TAGS, tag_symbols
from attention_jax.evaluation.inflection import (
    edit_distance,
    exact_match,
    inflection_counts,
    inflection_scores,
    scores_by_tag,
)

_TAG, _WORDS = "exact_match_tag_", "_words"


def prepare_inflection(text: str, data_config: DataConfig, *, is_source: bool = True) -> str:
    """Brings `LEMMA<TAB>TAG;TAG`, or a form, into the form of the data.

    Raises:
      DataError: If a source is not empty and has no tags.
    """
    text = prepare(text, data_config)
    return checked_source(text) if is_source and text else text


def scores(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Scores:
    """Computes the exact match and the mean edit distance of the forms."""
    return dict(inflection_scores(outputs, split.references))


def tag_scores(decoded: DecodedSplit) -> Scores:
    """Computes the exact match of the forms with each tag.

    Returns:
      `exact_match_tag_TAG`, and how many forms there are, `exact_match_tag_TAG_words`.
    """
    tags = [
        [symbol.removeprefix(BETWEEN_TAGS) for symbol in tag_symbols(text)]
        for text in decoded.split.sources
    ]
    references = decoded.split.references
    found: Scores = {}
    for tag, score in scores_by_tag(decoded.texts, references, tags).items():
        found[f"{_TAG}{tag}"] = score.exact_match
        found[f"{_TAG}{tag}{_WORDS}"] = score.words
    return found


def table(metrics: Mapping[str, Any]) -> list[str]:
    """Returns a line for each tag, the most frequent first: how many forms, and how many right."""
    names = [name for name in metrics if name.startswith(_TAG) and f"{name}{_WORDS}" in metrics]
    if not names:
        return []
    rows = [(name.removeprefix(_TAG), metrics[f"{name}{_WORDS}"], metrics[name]) for name in names]
    rows.sort(key=lambda row: (-row[1], row[0]))
    width = max(len("tag"), *(len(tag) for tag, *_ in rows))
    header = f"  {'tag':<{width}}  {'words':>6}  exact_match"
    return [header, *(f"  {tag:<{width}}  {n:>6.0f}  {right:>11.2f}" for tag, n, right in rows)]


def statistics(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Statistics:
    """Returns what is right of each form, and how scores follow from sums of that."""
    rows = inflection_counts(outputs, split.references)
    return {"exact_match": (rows, exact_match), "edit_distance": (rows, edit_distance)}


TASK = Task(
    label="inflection",
    prepare=prepare_inflection,
    scores=scores,
    details=(tag_scores, attention_scores),
    statistics=statistics,
    metrics=(
        Metric("exact_match", "exact match", "exact match (%)", "max"),
        Metric("edit_distance", "edit distance", "edits of a form", "min"),
    ),
    printed=("exact_match", "edit_distance"),
    shown=("exact_match", "edit_distance"),
    table=table,
)
