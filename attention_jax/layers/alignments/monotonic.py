"""Monotonic hard attention of order zero: no slot before the one of the last token.

  p(a_t = i | a_{t-1} = k) = exp(scores[t, i]) / sum_{j >= k} exp(scores[t, j]),  i >= k

The first token may be written from any slot.
"""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.alignment import ScoredAlignment, check_scores
from attention_jax.layers.readout import ReadoutSizes
from attention_jax.ops.lattices import MONOTONIC

PAPER = "Wu and Cotterell (2019), Exact hard monotonic attention, of order zero"


@dataclasses.dataclass(frozen=True)
class Config:
    """Monotonic alignments, by the scores of attention.

    Attributes:
      name: The alignment.
    """

    name: str = setting("monotonic")


def build(config: Config, sizes: ReadoutSizes) -> ScoredAlignment:
    """Builds the alignment; raises `ValueError` if attention has other weights than a softmax."""
    check_scores(sizes, config.name)
    return ScoredAlignment(MONOTONIC)
