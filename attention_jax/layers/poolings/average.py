"""Average pooling: the mean of all annotations, each of one weight."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.pooling import PlainPooling
from attention_jax.ops.pooling import average_pooling

PAPER = "Yang et al. (2016), section 3.2, HN-AVE"


@dataclasses.dataclass(frozen=True)
class Config:
    """Average pooling.

    Attributes:
      name: The pooling.
    """

    name: str = setting("average")


def build(config: Config, depth: int) -> PlainPooling:
    """Builds the pooling."""
    return PlainPooling(average_pooling)
