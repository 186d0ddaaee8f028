"""Machine translation: measured by BLEU and chrF, and by over- and under-translation."""

from collections.abc import Mapping, Sequence
from typing import Any

from attention_jax.data.config import DataConfig
from attention_jax.data.decoded import DecodedSplit, Scores
from attention_jax.data.examples import Split
from attention_jax.data.task import Metric, Statistics, Task
from attention_jax.data.text.words import word_pieces
from attention_jax.evaluation.attention_alignment import linking_weights
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


def signatures(metrics: Mapping[str, Any]) -> list[str]:
    """Signatures: says, in a line for each score, exactly what was computed, as sacrebleu does."""
    names = [name for name in ("bleu", "chrf") if metrics.get(f"{name}_signature")]
    return [f"{name:>11} {metrics[f'{name}_signature']}" for name in names]


def length_scores(decoded: DecodedSplit) -> Scores:
    """BLEU by source length: computes it for buckets of sources.

    Returns:
      For each bucket its BLEU, `bleu_source_FIRST_LAST`, and how many sentences it has,
      `bleu_source_FIRST_LAST_sentences`. FIRST and LAST are lengths in words; in the last bucket,
      LAST is `up`.
    """
    found: Scores = {}
    split, tokenize = decoded.split, decoded.data_config.bleu_tokenizer
    buckets = bleu_by_length(split.sources, decoded.texts, split.references, tokenize=tokenize)
    for bucket in buckets:
        name = f"bleu_source_{bucket.first}_{bucket.last or 'up'}"
        found[name] = bucket.bleu
        found[f"{name}_sentences"] = bucket.sentences
    return found


def missing_words(decoded: DecodedSplit) -> Scores:
    """Over- and under-translation: computes what outputs say twice and what they lack."""
    tokenize = decoded.data_config.bleu_tokenizer
    return dict(over_under_scores(decoded.texts, decoded.split.references, tokenize=tokenize))


def attention_scores(decoded: DecodedSplit) -> Scores:
    """Attention statistics: computes entropy, monotonicity and EOS mass for the best outputs.

    Returns:
      The scores; none where hypotheses have no weights.
    """
    if not decoded.attends:
        return {}
    shift = decoded.alignment_shift
    best = (linking_weights(one[0].weights, shift) for one in decoded.hypotheses if one)
    return dict(attention_statistics(best))


def covering_scores(decoded: DecodedSplit) -> Scores:
    """Fertility: computes it from the attention of the best output of each source.

    Sources without an output are left out.
    """
    if not decoded.attends:
        return {}
    split = decoded.split
    triples = zip(decoded.hypotheses, split.source_ids, split.sources, strict=True)
    best = [(one[0], ids, text) for one, ids, text in triples if one]
    covering = [
        covering_weights(
            linking_weights(hypothesis.weights, decoded.alignment_shift),
            word_pieces(split.source_vocabulary, ids, text),
            word_pieces(hypothesis.vocabulary(split.target_vocabulary), hypothesis.tokens),
        )
        for hypothesis, ids, text in best
    ]
    return dict(fertility_scores(covering))


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
    details=(length_scores, missing_words, attention_scores, covering_scores),
    statistics=statistics,
    metrics=(
        Metric("bleu", "BLEU", _PANEL, "max", decided_by=("data.bleu_tokenizer",)),
        Metric("chrf", "chrF", _PANEL, "max"),
    ),
    printed=("bleu", "chrf"),
    table=signatures,
    shown=("bleu", "chrf", "length_ratio", "dropped_words"),
    finds_dropped_words=True,
)
