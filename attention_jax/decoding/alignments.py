"""Word alignments from the attention of a hypothesis."""

from typing import Any

import numpy as np

from attention_jax.data.text.words import word_pieces
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.evaluation.alignment import to_pharaoh
from attention_jax.evaluation.attention_alignment import shifted
from attention_jax.evaluation.word_weights import WordWeights


def pharaoh_line(
    hypothesis: Hypothesis,
    source_ids: np.ndarray,
    source: str,
    source_vocabulary: Any,
    target_vocabulary: Any,
    shift: int = 0,
) -> str:
    """Links every output word with the source word that it attends to most, as `0-0 1-2`.

    Words are those of `words_of_pieces`: what spaces separate in source and output, but clusters of
    a script that writes no spaces, unless the vocabulary's texts were given in words. Where a
    vocabulary has no words but symbols, such as characters and phonemes, those are linked.

    Args:
      hypothesis: An output with its attention.
      source_ids: Its source, ending in EOS.
      source: The text of that.
      source_vocabulary: Its pieces tell where words begin.
      target_vocabulary: Likewise for the output.
      shift: The step after the one that writes a token whose attention links it.
    """
    weights = shifted(np.asarray(hypothesis.weights, np.float64), shift)
    if min(weights.shape) < 2:  # nothing but EOS on a side
        return ""
    source_words = word_pieces(source_vocabulary, source_ids, source)
    target_words = word_pieces(target_vocabulary, hypothesis.tokens)
    return to_pharaoh(WordWeights.of_tokens(weights, source_words, target_words).links())
