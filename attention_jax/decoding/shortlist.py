"""Vocabulary shortlist: the target tokens that the sources of a batch are likely translated by.

With a large vocabulary, the product of features and output matrix is most of a step of decoding.
Searches may do with the rows of few tokens: the most frequent ones, and translations of the
batch's own source tokens by a lexicon. What is left out cannot be written, and its probability
goes to the others.

Source:
  Jean et al. (2015), "On using very large target vocabulary", candidate lists of a dictionary;
  there one for each sentence, here one for a batch, whose product is then a single one.
"""

import dataclasses

import numpy as np
from jaxtyping import Bool, Int

from attention_jax.data.lexicon import Lexicon
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds

# Sizes of shortlists, in shares of the vocabulary: a search is compiled for each that occurs.
_SIZES = 16


@dataclasses.dataclass(frozen=True)
class Shortlister:
    """Shortlists of batches.

    Attributes:
      config: Its `shortlist` and `shortlist_frequent` are used.
      lexicon: What source tokens may be translated by.
      vocabulary_size: V, target ids, ordered by frequency behind the special ones.
    """

    config: SearchConfig
    lexicon: Lexicon
    vocabulary_size: int

    def __call__(
        self, source: Int[np.ndarray, "B S"], mask: Bool[np.ndarray, "B S"]
    ) -> np.ndarray | None:
        """Returns the shortlist of a batch, `N` ids in rising order: special ones stay the first.

        It is filled up with the most frequent other tokens to one of few sizes; None where that is
        the whole vocabulary.

        Args:
          source: Source ids.
          mask: True at real ones.
        """
        size = self.vocabulary_size
        frequent = np.arange(min(SpecialIds.COUNT + self.config.shortlist_frequent, size))
        translations = self.lexicon.ids[np.unique(source[mask]), : self.config.shortlist]
        ids = np.union1d(frequent, translations)  # which may be PAD, where a token has fewer
        unit = -(-size // _SIZES)
        number = unit * -(-len(ids) // unit)
        if number >= size:
            return None
        others = np.setdiff1d(np.arange(size), ids, assume_unique=True)
        return np.union1d(ids, others[: number - len(ids)]).astype(np.int32)
