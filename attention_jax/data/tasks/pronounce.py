"""Grapheme-to-phoneme conversion: how words are pronounced, judged by phoneme error rates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Split
from attention_jax.data.task import Metric, Scores, Statistics, Task, prepare
from attention_jax.evaluation.attention_statistics import attention_statistics
from attention_jax.evaluation.error_rates import error_counts, pronunciation_scores
from attention_jax.spaced_words import spaced_words


def prepare_word(text: str, data_config: DataConfig, *, is_source: bool = True) -> str:
    """Brings a word, or phonemes, into the dictionary's form."""
    text = prepare(text, data_config)
    # Words are listed in lower case only; phonemes are not.
    return text.lower() if is_source else text


def scores(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Scores:
    """Computes error rates of phonemes and of words, with and without stress."""
    return dict(pronunciation_scores(outputs, split.references))


def attention_scores(
    split: Split, found: Sequence[Sequence[Any]], data_config: DataConfig
) -> Scores:
    """Computes what the attention of the best outputs is like."""
    return dict(attention_statistics(one[0].weights for one in found if one))


def statistics(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Statistics:
    """Returns the errors in each word, and how error rates follow from their sums."""
    rows = error_counts(
        [spaced_words(output) for output in outputs],
        [[*map(spaced_words, variants)] for variants in split.references],
    )
    return {"per": (rows, _phoneme_error_rate), "wer": (rows, _word_error_rate)}


def _phoneme_error_rate(counts: np.ndarray) -> np.ndarray:
    return 100 * counts[..., 0] / np.maximum(counts[..., 1], 1)


def _word_error_rate(counts: np.ndarray) -> np.ndarray:
    return 100 * counts[..., 2] / counts[..., 3]


_PANEL = "error rate (%)"
TASK = Task(
    label="pronunciation",
    prepare=prepare_word,
    scores=scores,
    attention_scores=attention_scores,
    statistics=statistics,
    metrics=(
        Metric("per", "PER", _PANEL, "min"),
        Metric("wer", "WER", _PANEL, "min"),
        Metric("per_no_stress", "PER without stress", _PANEL, "min"),
        Metric("wer_no_stress", "WER without stress", _PANEL, "min"),
    ),
    printed=("wer", "per"),
    shown=("per", "wer", "per_no_stress", "wer_no_stress"),
)
