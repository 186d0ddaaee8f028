"""Subword-to-word attention: merges the weights of tokens into those of words, and links words.

A weight matrix here is `T S`: one row for each target word or token, one column for each of the
source. A token may span several words, such as a Chinese subword of two one-character words. Where
weights are summed or averaged, the words share the token's weight equally. Where words are linked,
each of them has the whole weight: attention cannot tell them apart, so either all or none of them
are linked.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.alignment import (
    Links,
    Members,
    indicators,
    links_above,
    links_from_weights,
    membership,
)

Matrix = Float[np.ndarray, "_T _S"]


@dataclasses.dataclass(frozen=True, eq=False)
class WordWeights:
    """Attention between the words of a sentence pair, for counting and for linking.

    Attributes:
      weights: As `between_words` makes them.
      whole: The same, except that words which share a source token each have its whole weight.
      alike: For each source word, the words made of the same tokens, itself among them.
    """

    weights: Matrix
    whole: Matrix
    alike: Members

    @classmethod
    def of_tokens(
        cls, weights: Matrix, source_tokens: Members, target_tokens: Members
    ) -> "WordWeights":
        """Subword-to-word attention: merges attention between tokens, with or without EOS.

        Args:
          weights: Attention between tokens.
          source_tokens: The tokens of each source word.
          target_tokens: The tokens of each target word.
        """
        weights = np.asarray(weights, np.float64)
        sources = membership(source_tokens, weights.shape[1])
        # Rows are normalised over words before they are averaged: a token whose attention was
        # mostly on EOS would else count for less than its word's other tokens.
        rows = _divided(weights, (weights @ sources).sum(axis=1, keepdims=True))
        rows = membership(target_tokens, weights.shape[0]).T @ rows  # T S -> words_T S
        shares = rows @ sources  # words_T S -> words_T words_S
        whole = rows @ indicators(source_tokens, weights.shape[1])  # likewise
        # Both are divided by the same total, so that a threshold means the same for either.
        total = shares.sum(axis=1, keepdims=True)
        shares, whole = _divided(shares, total), _divided(whole, total)
        same: dict[tuple[int, ...], list[int]] = {}
        for word, tokens in enumerate(source_tokens):
            same.setdefault(tuple(tokens), []).append(word)
        return cls(shares, whole, [same[tuple(tokens)] for tokens in source_tokens])

    @classmethod
    def of(cls, attention: "WordWeights | Matrix") -> "WordWeights":
        """Wraps a matrix between words that share no token; returns `WordWeights` as they are."""
        if isinstance(attention, WordWeights):
            return attention
        return cls(attention, attention, [[word] for word in range(attention.shape[1])])

    def links(self, threshold: float | None = None) -> Links:
        """Word alignment: returns the (source, target) links that the weights make.

        Args:
          threshold: Links all pairs of at least this weight. None links every target word with the
            source word that it attends to most and with those made of the same tokens; a row
            without weight gets no link.
        """
        if threshold is not None:
            return links_above(self.whole, threshold)
        return sorted(
            (word, target)
            for source, target in links_from_weights(self.whole)
            for word in self.alike[source]
        )


def _divided(weights: Matrix, total: Float[np.ndarray, "_T 1"]) -> Matrix:
    """Normalises rows by their totals; a row whose total is zero becomes zero."""
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def between_words(
    weights: Float[np.ndarray, "T S"],
    source_tokens: Sequence[Sequence[int]],
    target_tokens: Sequence[Sequence[int]],
) -> Float[np.ndarray, "words_T words_S"]:
    """Subword-to-word attention: sums the weights of source tokens, averages target tokens' rows.

    A token of several words is shared among them. Attention to tokens of no word, such as EOS, is
    left out; the rest of each token's row is renormalised first, so that the tokens of a target
    word count alike. A row without any weight stays zero.

    Args:
      weights: Between tokens, EOS included.
      source_tokens: The tokens of each source word.
      target_tokens: The tokens of each target word.

    Source:
      Koehn and Knowles (2017), section 3.5.
    """
    return WordWeights.of_tokens(weights, source_tokens, target_tokens).weights
