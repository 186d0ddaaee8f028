"""Exact hard attention: each target token is written from one slot, whatever the others' are.

  p(y_t | y_<t, x) = sum_s weights[t, s] p(y_t | slot s, y_<t)

The softmax of the scores is the prior of the slot. Where soft attention averages annotations and
makes one distribution, this averages the distributions that annotations make.
"""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.alignment import ScoredAlignment, check_scores
from attention_jax.layers.readout import ReadoutSizes
from attention_jax.ops.lattices import INDEPENDENT

PAPER = "Wu, Shapiro and Cotterell (2018), Hard non-monotonic attention"


@dataclasses.dataclass(frozen=True)
class Config:
    """Independent alignments.

    Attributes:
      name: The alignment.
    """

    name: str = setting("independent")


def build(config: Config, sizes: ReadoutSizes) -> ScoredAlignment:
    """Builds the alignment; raises `ValueError` if attention has other weights than a softmax."""
    check_scores(sizes, config.name)
    return ScoredAlignment(INDEPENDENT)
