"""Attention between words, of attention between tokens, and the links that it makes.

A weight matrix here is `T S`: one row for each target word or token, one column for each of the
source. A token of several words, such as a Chinese subword of two characters, is shared among them
where weights are counted. Where words are linked each has all of it: attention cannot tell them
apart, so they are linked alike, as a link of words is one of all their tokens.
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
    """Attention between the words of a pair.

    Attributes:
      weights: As `between_words` makes them.
      whole: The same, but that a source word has the whole weight of a token that it shares.
      alike: For each source word, the words of the same tokens, itself among them.
    """

    weights: Matrix
    whole: Matrix
    alike: Members

    @classmethod
    def of_tokens(
        cls, weights: Matrix, source_tokens: Members, target_tokens: Members
    ) -> "WordWeights":
        """Makes them of attention between tokens.

        Args:
          weights: Between tokens, EOS included or not.
          source_tokens: The tokens of each source word.
          target_tokens: The tokens of each target word.
        """
        weights = np.asarray(weights, np.float64)
        sources = membership(source_tokens, weights.shape[1])
        rows = _divided(weights, (weights @ sources).sum(axis=1, keepdims=True))
        rows = membership(target_tokens, weights.shape[0]).T @ rows
        shares = rows @ sources
        whole = rows @ indicators(source_tokens, weights.shape[1])
        total = shares.sum(axis=1, keepdims=True)
        shares, whole = _divided(shares, total), _divided(whole, total)
        same: dict[tuple[int, ...], list[int]] = {}
        for word, tokens in enumerate(source_tokens):
            same.setdefault(tuple(tokens), []).append(word)
        return cls(shares, whole, [same[tuple(tokens)] for tokens in source_tokens])

    @classmethod
    def of(cls, attention: "WordWeights | Matrix") -> "WordWeights":
        """Makes them of a matrix between words that share no token; others are what they are."""
        if isinstance(attention, WordWeights):
            return attention
        return cls(attention, attention, [[word] for word in range(attention.shape[1])])

    def links(self, threshold: float | None = None) -> Links:
        """Returns the (source, target) words that belong together.

        Args:
          threshold: Links are what has at least this weight; None links every target word with the
            source word that it attends to most, and with those that are like it. A row without
            weight has none.
        """
        if threshold is not None:
            return links_above(self.whole, threshold)
        return sorted(
            (word, target)
            for source, target in links_from_weights(self.whole)
            for word in self.alike[source]
        )


def _divided(weights: Matrix, total: Float[np.ndarray, "_T 1"]) -> Matrix:
    """Divides rows by their totals; a row whose total is zero becomes zero."""
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def between_words(
    weights: Float[np.ndarray, "T S"],
    source_tokens: Sequence[Sequence[int]],
    target_tokens: Sequence[Sequence[int]],
) -> Float[np.ndarray, "words_T words_S"]:
    """Turns attention between tokens into attention between words.

    A source word gets the sum of what its tokens get, a target word the mean of its tokens' rows;
    a token of several words is shared among them. What falls on tokens of no word, such as EOS,
    is left out, and the rest of each token's row is renormalised first, so that the tokens of a
    target word count alike. A row without any weight stays zero, and does not count.

    Args:
      weights: Between tokens, EOS included.
      source_tokens: The tokens of each source word.
      target_tokens: The tokens of each target word.

    Source:
      Koehn and Knowles (2017), section 3.5.
    """
    return WordWeights.of_tokens(weights, source_tokens, target_tokens).weights
