"""Word alignment of outputs: links in Pharaoh format from the attention of a hypothesis."""

from typing import Any

import numpy as np

from attention_jax.data.text.words import word_pieces
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.evaluation.alignment import Links, to_pharaoh
from attention_jax.evaluation.attention_alignment import linking_weights
from attention_jax.evaluation.word_weights import WordWeights


def pharaoh_line(*args: Any, **options: Any) -> str:
    """Pharaoh format: the links of an output as `0-0 1-2`; for the arguments see `word_links`."""
    return to_pharaoh(word_links(*args, **options))


def word_links(*args: Any, **options: Any) -> Links:
    """Word alignment: links every output word with its most attended source word, (source, target).

    For the arguments see `word_weights`.
    """
    return word_weights(*args, **options).links()


def word_weights(
    hypothesis: Hypothesis,
    source_ids: np.ndarray,
    source: str,
    source_vocabulary: Any,
    target_vocabulary: Any,
    shift: int = 0,
) -> WordWeights:
    """Subword-to-word attention: the weights that link the words of an output.

    Words are those of `words_of_pieces`: usually what spaces separate; in scripts without spaces
    between words, clusters of letters. Symbols such as characters or phonemes, which make no words,
    are linked themselves.

    Args:
      hypothesis: An output with its attention.
      source_ids: Ids of its source, ending in EOS.
      source: Text of its source.
      source_vocabulary: Its pieces show where words begin.
      target_vocabulary: The same for the output.
      shift: The step whose attention links a token, counted from the one that writes it.
    """
    weights = linking_weights(hypothesis.weights, shift)
    source_words = word_pieces(source_vocabulary, source_ids, source)
    target_words = word_pieces(hypothesis.vocabulary(target_vocabulary), hypothesis.tokens)
    return WordWeights.of_tokens(weights, source_words, target_words)
