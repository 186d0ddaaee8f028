"""Limits of outputs' lengths and the lengths of training pairs, which they should have room for.

A thousandth of the pairs is left out of account: every corpus has some that are no translations of
one another.
"""

import dataclasses
import math

import numpy as np
from jaxtyping import Int

from attention_jax.configuration import setting
from attention_jax.search.config import ROUNDING, SearchConfig

_OUTLIERS = 1000  # one in so many

Lengths = Int[np.ndarray, " N"]


@dataclasses.dataclass(frozen=True)
class Longest:
    """Length limit: the most tokens of an output, a multiple of its source's and a constant.

    Attributes:
      factor: As `SearchConfig.max_length_factor`.
      constant: As `SearchConfig.max_length_constant`.
    """

    factor: float = setting(at_least=0, at_most=1000)
    constant: int = setting(at_least=0, at_most=1_000_000)

    @classmethod
    def of(cls, config: SearchConfig) -> "Longest":
        """Returns the limit of a search config."""
        return cls(config.max_length_factor, config.max_length_constant)

    def within(self, config: SearchConfig) -> SearchConfig:
        """Returns a search config with this limit in place of its own."""
        return dataclasses.replace(
            config, max_length_factor=self.factor, max_length_constant=self.constant
        )


DEFAULT = Longest.of(SearchConfig())


def longest_of_pairs(sources: Lengths, targets: Lengths) -> Longest:
    """Length limit of a corpus: returns the default, or one that has room for the training pairs.

    longest(n) = r a n + c,  r = max(1, sum of targets / sum of sources)

    Here a is the default's factor, and c its constant or the least that has room for the targets.

    Args:
      sources: Tokens of each source, EOS included.
      targets: Tokens of its target.
    """
    if not is_unusual(forbidden(SearchConfig(), sources, targets)[1], len(targets)):
        return DEFAULT
    factor = DEFAULT.factor * max(1.0, targets.sum() / sources.sum())
    # Rounded up to thousandths, which is how it is written into a config.
    factor = min(math.ceil(1000 * factor) / 1000, 1000.0)
    # What each target needs beyond the multiple; the thousandth that needs most is left out below.
    room = np.sort(targets - np.floor(factor * sources + ROUNDING).astype(int))
    return Longest(factor, max(DEFAULT.constant, int(room[-1 - len(room) // _OUTLIERS])))


def forbidden(config: SearchConfig, sources: Lengths, targets: Lengths) -> tuple[int, int]:
    """Counts the training targets that a search would not find, as too short and as too long.

    Args:
      config: Its limits count.
      sources: Tokens of each source, EOS included.
      targets: Tokens of its target.
    """
    most = np.floor(config.max_length_factor * sources + ROUNDING) + config.max_length_constant
    most = np.maximum(most, 1)
    fewest = np.floor(config.min_length_ratio * sources + ROUNDING) + config.min_length_constant + 1
    fewest = np.minimum(fewest, most)
    return int((targets < fewest).sum()), int((targets > most).sum())


def is_unusual(pairs: int, number: int) -> bool:
    """Whether these are too many of `number` pairs to be mere errors of the corpus."""
    return pairs > number // _OUTLIERS
