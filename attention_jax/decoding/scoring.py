"""How good outputs are, by the kind of task."""

from collections.abc import Sequence

import numpy as np

from attention_jax.data.tasks import PRONUNCIATION, Split
from attention_jax.data.text.words import word_pieces
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.evaluation.attention_statistics import attention_statistics
from attention_jax.evaluation.bleu import bleu_from_statistics, bleu_statistics
from attention_jax.evaluation.bootstrap import Score
from attention_jax.evaluation.by_length import bleu_by_length
from attention_jax.evaluation.chrf import chrf_from_statistics, chrf_statistics
from attention_jax.evaluation.error_rates import error_counts, pronunciation_scores
from attention_jax.evaluation.fertility import covering_weights, fertility_scores
from attention_jax.evaluation.over_under import over_under_scores
from attention_jax.evaluation.translation import translation_scores
from attention_jax.spaced_words import spaced_words

Scores = dict[str, float | str]


def score_outputs(kind: str, split: Split, outputs: Sequence[str]) -> Scores:
    """Compares outputs with the references of a split.

    Args:
      kind: `pronunciation` or `translation`.
      split: Its references are compared with.
      outputs: One for each of its sources.

    Returns:
      The metrics by name; those whose name ends in `_signature` are text.
    """
    if kind == PRONUNCIATION:
        return dict(pronunciation_scores(outputs, split.references))
    return dict(
        translation_scores(outputs, split.references, tokenize=split.bleu_tokenizer)
    )


def score_by_length(kind: str, split: Split, outputs: Sequence[str]) -> Scores:
    """Computes BLEU for short, longer and long sources; nothing for pronunciations.

    Returns:
      `bleu_source_FIRST_LAST` and the number of sentences `bleu_source_FIRST_LAST_sentences`, in
      words; LAST is `up` in the last bucket.
    """
    if kind == PRONUNCIATION:
        return {}
    scores: Scores = {}
    buckets = bleu_by_length(
        split.sources, outputs, split.references, tokenize=split.bleu_tokenizer
    )
    for bucket in buckets:
        name = f"bleu_source_{bucket.first}_{bucket.last or 'up'}"
        scores[name] = bucket.bleu
        scores[f"{name}_sentences"] = bucket.sentences
    return scores


def score_over_under(kind: str, split: Split, outputs: Sequence[str]) -> Scores:
    """Computes repeated, excess and missing words; nothing for pronunciations."""
    if kind == PRONUNCIATION:
        return {}
    return dict(over_under_scores(outputs, split.references, tokenize=split.bleu_tokenizer))


def score_attention_of_outputs(
    kind: str, split: Split, found: Sequence[Sequence[Hypothesis]]
) -> Scores:
    """Computes what the attention of outputs is like, and for translations what it covers.

    Args:
      kind: Of the task.
      split: The sources.
      found: The hypotheses of each, best first; those without any do not count.
    """
    triples = zip(found, split.source_ids, split.sources, strict=True)
    best = [(one[0], ids, text) for one, ids, text in triples if one]
    scores: Scores = dict(attention_statistics(hypothesis.weights for hypothesis, *_ in best))
    if kind == PRONUNCIATION:
        return scores
    covering = [
        covering_weights(
            hypothesis.weights,
            word_pieces(split.source_vocabulary, ids, text),
            word_pieces(split.target_vocabulary, hypothesis.tokens),
        )
        for hypothesis, ids, text in best
    ]
    return {**scores, **fertility_scores(covering)}


def sentence_statistics(
    kind: str, split: Split, outputs: Sequence[str]
) -> dict[str, tuple[np.ndarray, Score]]:
    """Returns, for each metric, what it needs of each sentence, and how sums of that are scored."""
    if kind == PRONUNCIATION:
        rows = error_counts(
            [spaced_words(output) for output in outputs],
            [[*map(spaced_words, variants)] for variants in split.references],
        )
        return {"per": (rows, _per), "wer": (rows, _wer)}
    statistics = bleu_statistics(outputs, split.references, tokenize=split.bleu_tokenizer)
    return {
        "bleu": (statistics, bleu_from_statistics),
        "chrf": (chrf_statistics(outputs, split.references), chrf_from_statistics),
    }


def _per(counts: np.ndarray) -> np.ndarray:
    return 100 * counts[..., 0] / np.maximum(counts[..., 1], 1)


def _wer(counts: np.ndarray) -> np.ndarray:
    return 100 * counts[..., 2] / counts[..., 3]
