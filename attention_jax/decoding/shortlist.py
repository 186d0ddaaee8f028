"""Vocabulary shortlist: the target tokens that the sources of a batch are likely translated by.

With a large vocabulary, the product of features and output matrix is much of a step of decoding.
Searches may do with the rows of few tokens: the most frequent ones, and translations of the
batch's own source tokens by a lexicon. What is left out cannot be written, and its probability
goes to the others: an output depends on which sources are searched together.

Source:
  Jean et al. (2015), "On using very large target vocabulary", candidate lists of a dictionary;
  there one for each sentence, here one for a batch, whose product is then a single one.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from attention_jax.data.lexicon import LEXICON, Lexicon
from attention_jax.errors import ConfigError
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
    """

    config: SearchConfig
    lexicon: Lexicon

    @classmethod
    def of(cls, config: SearchConfig, resources: Mapping[str, Any]) -> "Shortlister | None":
        """Returns what makes the shortlists that a search wants; None if it wants none.

        Args:
          config: The search.
          resources: Those of the examples, the lexicon of their run among them.

        Raises:
          ConfigError: If there is no lexicon, or it has fewer translations of a token.
        """
        if not config.shortlist:
            return None
        if LEXICON not in resources:
            raise ConfigError(
                "search.shortlist: expected 0 where there is no lexicon of the sources "
                f"(data.lexicon, when a run is trained), found {config.shortlist}"
            )
        most = resources[LEXICON].ids.shape[1]
        if config.shortlist > most:
            raise ConfigError(
                f"search.shortlist: expected at most the data.lexicon.size of the run, {most}, "
                f"found {config.shortlist}"
            )
        return cls(config, resources[LEXICON])

    def __call__(
        self,
        source: Int[np.ndarray, "B S"],
        mask: Bool[np.ndarray, "B S"],
        forced: Int[np.ndarray, "B P"] | Sequence[int] = (),
    ) -> np.ndarray | None:
        """Returns the shortlist of a batch, `N` ids in rising order: special ones stay the first.

        It is filled up with the most frequent other tokens to one of few sizes; None where that is
        the whole vocabulary.

        Args:
          source: Source ids.
          mask: True at real ones.
          forced: Target ids with which outputs are made to begin, padded.
        """
        by_frequency = self.lexicon.by_frequency
        size = len(by_frequency)
        frequent = by_frequency[: SpecialIds.COUNT + self.config.shortlist_frequent]
        translations = self.lexicon.ids[np.unique(source[mask]), : self.config.shortlist]
        # Which may be PAD, where a token has fewer.
        ids = functools.reduce(np.union1d, (frequent, translations, np.asarray(forced, np.int32)))
        unit = -(-size // _SIZES)
        number = unit * -(-len(ids) // unit)
        if number >= size:
            return None
        others = by_frequency[~np.isin(by_frequency, ids)]
        return np.union1d(ids, others[: number - len(ids)]).astype(np.int32)
