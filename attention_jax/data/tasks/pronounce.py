"""Grapheme-to-phoneme conversion: the pronunciation of words, measured by phoneme error rates."""

from collections.abc import Sequence

import numpy as np

from attention_jax.data.config import DataConfig
from attention_jax.data.decoded import Scores
from attention_jax.data.examples import Split
from attention_jax.data.task import Metric, Statistics, Task, prepare
from attention_jax.data.tasks.translate import attention_scores
from attention_jax.evaluation.error_rates import error_counts, pronunciation_scores
from attention_jax.spaced_words import spaced_words


def prepare_word(text: str, data_config: DataConfig, *, is_source: bool = True) -> str:
    """Normalisation: brings a word, or phonemes, into the dictionary's form."""
    text = prepare(text, data_config)
    # CMUdict has words in lower case only, but phonemes in upper case.
    return text.lower() if is_source and data_config.has_lowercase_sources else text


def scores(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Scores:
    """Phoneme and word error rate: computes them with and without stress."""
    return dict(pronunciation_scores(outputs, split.references))


def statistics(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Statistics:
    """Sufficient statistics: returns the errors in each word, and the rates of their sums."""
    rows = error_counts(
        [spaced_words(output) for output in outputs],
        [[*map(spaced_words, variants)] for variants in split.references],
    )
    return {"per": (rows, _phoneme_error_rate), "wer": (rows, _word_error_rate)}


# Columns of counts are those of `error_counts`: edits, symbols, whether there are edits, and 1.
def _phoneme_error_rate(counts: np.ndarray) -> np.ndarray:
    return 100 * counts[..., 0] / np.maximum(counts[..., 1], 1)


def _word_error_rate(counts: np.ndarray) -> np.ndarray:
    return 100 * counts[..., 2] / counts[..., 3]


_PANEL = "error rate (%)"
TASK = Task(
    label="pronunciation",
    prepare=prepare_word,
    scores=scores,
    details=(attention_scores,),
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
