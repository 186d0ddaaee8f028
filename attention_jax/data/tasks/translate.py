"""Machine translation: measured by BLEU and chrF, and by over- and under-translation."""

from collections.abc import Sequence
from typing import Any

from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Split
from attention_jax.data.task import Metric, Scores, Statistics, Task
from attention_jax.data.text.words import word_pieces
from attention_jax.evaluation.attention_statistics import attention_statistics
from attention_jax.evaluation.bleu import bleu_from_statistics, bleu_statistics
from attention_jax.evaluation.by_length import bleu_by_length
from attention_jax.evaluation.chrf import chrf_from_statistics, chrf_statistics
from attention_jax.evaluation.fertility import covering_weights, fertility_scores
from attention_jax.evaluation.over_under import over_under_scores
from attention_jax.evaluation.translation import translation_scores


def scores(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Scores:
    """BLEU and chrF: computes both with their signatures, and the ratio of lengths."""
    tokenize = data_config.bleu_tokenizer
    return dict(translation_scores(outputs, split.references, tokenize=tokenize))


def details(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Scores:
    """BLEU by source length, over- and under-translation: computes further scores of outputs."""
    missing = over_under_scores(outputs, split.references, tokenize=data_config.bleu_tokenizer)
    return {**scores_by_length(split, outputs, data_config), **missing}


def scores_by_length(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Scores:
    """BLEU by source length: computes it for buckets of sources.

    Returns:
      For each bucket its BLEU, `bleu_source_FIRST_LAST`, and how many sentences it has,
      `bleu_source_FIRST_LAST_sentences`. FIRST and LAST are lengths in words; in the last bucket,
      LAST is `up`.
    """
    found: Scores = {}
    buckets = bleu_by_length(
        split.sources, outputs, split.references, tokenize=data_config.bleu_tokenizer
    )
    for bucket in buckets:
        name = f"bleu_source_{bucket.first}_{bucket.last or 'up'}"
        found[name] = bucket.bleu
        found[f"{name}_sentences"] = bucket.sentences
    return found


def attention_scores(
    split: Split, found: Sequence[Sequence[Any]], data_config: DataConfig
) -> Scores:
    """Attention statistics and fertility: computes them for the best output of each source.

    Sources without an output are left out.
    """
    triples = zip(found, split.source_ids, split.sources, strict=True)
    best = [(one[0], ids, text) for one, ids, text in triples if one]
    covering = [
        covering_weights(
            hypothesis.weights,
            word_pieces(split.source_vocabulary, ids, text),
            word_pieces(hypothesis.vocabulary(split.target_vocabulary), hypothesis.tokens),
        )
        for hypothesis, ids, text in best
    ]
    statistics = attention_statistics(hypothesis.weights for hypothesis, *_ in best)
    return {**statistics, **fertility_scores(covering)}


def statistics(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Statistics:
    """Sufficient statistics: returns those of BLEU and chrF, for each sentence."""
    bleu = bleu_statistics(outputs, split.references, tokenize=data_config.bleu_tokenizer)
    return {
        "bleu": (bleu, bleu_from_statistics),
        "chrf": (chrf_statistics(outputs, split.references), chrf_from_statistics),
    }


_PANEL = "BLEU, chrF"
TASK = Task(
    label="translation",
    scores=scores,
    details=details,
    attention_scores=attention_scores,
    statistics=statistics,
    metrics=(
        Metric("bleu", "BLEU", _PANEL, "max", decided_by=("data.bleu_tokenizer",)),
        Metric("chrf", "chrF", _PANEL, "max"),
    ),
    printed=("bleu", "chrf"),
    shown=("bleu", "chrf", "length_ratio", "dropped_words"),
    finds_dropped_words=True,
)
