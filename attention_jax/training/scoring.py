"""How good outputs are, by the kind of task."""

from collections.abc import Sequence

from attention_jax.data.tasks import PRONUNCIATION, Split
from attention_jax.evaluation.by_length import bleu_by_length
from attention_jax.evaluation.error_rates import pronunciation_scores
from attention_jax.evaluation.translation import translation_scores

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
    return dict(translation_scores(outputs, split.references))


def score_by_length(kind: str, split: Split, outputs: Sequence[str]) -> Scores:
    """Computes BLEU for short, longer and long sources; nothing for pronunciations.

    Returns:
      `bleu_source_FIRST_LAST` and the number of sentences `bleu_source_FIRST_LAST_sentences`, in
      words; LAST is `up` in the last bucket.
    """
    if kind == PRONUNCIATION:
        return {}
    scores: Scores = {}
    for bucket in bleu_by_length(split.sources, outputs, split.references):
        name = f"bleu_source_{bucket.first}_{bucket.last or 'up'}"
        scores[name] = bucket.bleu
        scores[f"{name}_sentences"] = bucket.sentences
    return scores
