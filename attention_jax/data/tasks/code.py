"""Code generation: a program's text for a description; measured by exact match and BLEU.

Programs are compared word by word, a quoted string being one, whatever stands between words: what
a tokenization does to spaces is no mistake.
"""

from collections.abc import Sequence

from attention_jax.data.config import DataConfig
from attention_jax.data.decoded import DecodedSplit, Scores
from attention_jax.data.examples import Split
from attention_jax.data.task import Metric, Statistics, Task
from attention_jax.data.tasks.translate import attention_scores
from attention_jax.data.text.code import code_words, spaced_code
from attention_jax.data.text.vocabulary import SUBWORDS
from attention_jax.evaluation.bleu import bleu_from_statistics, bleu_statistics
from attention_jax.evaluation.code import match_counts, matched, recall, recall_counts
from attention_jax.types import SpecialIds

_WORDS = "none"  # sacrebleu's tokenizer for text whose words have spaces between them


def scores(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Scores:
    """Exact match and BLEU of words, both in percent."""
    found = statistics(split, outputs, data_config)
    return {name: float(score(rows.sum(axis=0))) for name, (rows, score) in found.items()}


def unknown_words(decoded: DecodedSplit) -> Scores:
    """Recall of unknown words: those of references that the vocabulary of outputs lacks.

    Returns:
      `unknown_word_recall`, in percent, and `unknown_words`, how many there are; nothing where
      tokens are subwords, which lack no word.
    """
    split, vocabulary = decoded.split, decoded.split.target_vocabulary
    if vocabulary.kind == SUBWORDS:
        return {}
    references = [vocabulary.split(one[0]) for one in split.references]
    words = {word for reference in references for word in reference}
    known = {word for word in words if vocabulary.ids_of([word]) != [SpecialIds.UNK]}
    counts = recall_counts([*map(vocabulary.split, decoded.texts)], references, known)
    sums = counts.sum(axis=0)
    return {"unknown_word_recall": float(recall(sums)), "unknown_words": float(sums[1])}


def statistics(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Statistics:
    """Sufficient statistics: returns those of exact match and BLEU, for each example."""
    references = [[*map(code_words, one)] for one in split.references]
    spaced = [[" ".join(words) for words in one] for one in references]
    is_right = match_counts([*map(code_words, outputs)], references)
    bleu = bleu_statistics([*map(spaced_code, outputs)], spaced, tokenize=_WORDS)
    return {"exact_match": (is_right, matched), "bleu": (bleu, bleu_from_statistics)}


TASK = Task(
    label="code",
    scores=scores,
    details=(unknown_words, attention_scores),
    statistics=statistics,
    metrics=(
        Metric("exact_match", "exact match", "exact match, BLEU (%)", "max"),
        Metric("bleu", "BLEU", "exact match, BLEU (%)", "max"),
    ),
    printed=("exact_match", "bleu"),
    shown=("exact_match", "bleu", "unknown_word_recall"),
)
