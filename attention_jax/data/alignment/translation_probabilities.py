"""Translation probabilities of an aligner's model, as a list of pairs of words."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attention_jax.data.alignment import hmm, ibm1
from attention_jax.data.alignment.aligners import MAX_WORDS
from attention_jax.data.alignment.bitext import (
    Bitext,
    Sentence,
    make_bitext,
    vocabulary,
)
from attention_jax.data.alignment.ibm1 import Report, Table

# So small that it changes no probability: it only keeps a word of which nothing is expected from
# being divided by zero.
_SMOOTHING = 1e-9


class TranslationPairs(NamedTuple):
    """Pairs of words that share a sentence pair, with t(target | source).

    Attributes:
      sources: Of each pair, the place of its source word in `source_words`.
      targets: The same for its target word.
      probs: t, which sums to one over the pairs of a source word.
      source_words: Every source word once.
      target_words: Every target word once.
    """

    sources: Int[np.ndarray, " pairs"]
    targets: Int[np.ndarray, " pairs"]
    probs: Float[np.ndarray, " pairs"]
    source_words: list[str]
    target_words: list[str]


def translation_pairs(
    sources: Sequence[Sentence],
    targets: Sequence[Sentence],
    method: str,
    report: Report = lambda line: None,
) -> TranslationPairs:
    """Lexical translation probabilities: trains an aligner, and returns its table t(e|f).

      t(e|f) = c(e,f) / sum_e' c(e',f)

    c are the counts that the trained model expects. The aligner itself smooths them, which keeps
    rare words from being linked to many, but would leave next to nothing for their translations.

    Args:
      sources: Sentences as words, which are told apart without regard to case.
      targets: The translation of each.
      method: `ibm1` or `hmm`.
      report: Called with a line after each iteration.
    """
    fits = [
        max(len(source), len(target)) <= MAX_WORDS
        for source, target in zip(sources, targets, strict=True)
    ]
    sides = [
        [sentence for sentence, fit in zip(side, fits, strict=True) if fit]
        for side in (sources, targets)
    ]
    bitext = make_bitext(*sides)
    table = ibm1.translation_table(bitext, _counts(bitext, method, report), _SMOOTHING)
    source_words, target_words = map(vocabulary, sides)
    is_word = bitext.source_of < len(source_words)  # not NULL, which is the last
    return TranslationPairs(
        bitext.source_of[is_word], bitext.target_of[is_word], table[is_word],
        source_words, target_words,
    )  # fmt: skip


def _counts(bitext: Bitext, method: str, report: Report) -> Table:
    """Returns how often the trained model expects each pair of words to be linked."""
    table = ibm1.train(bitext, report=report)
    if method == "ibm1":
        return ibm1.expected_counts(bitext, table)[0]
    return hmm.expected_counts(bitext, *hmm.train(bitext, table, report=report))[0]
