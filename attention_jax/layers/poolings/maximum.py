"""Max pooling: the largest value of each feature of the annotations."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.pooling import PlainPooling
from attention_jax.ops.pooling import maximum_pooling

PAPER = "Yang et al. (2016), section 3.2, HN-MAX; Collobert et al. (2011), section 3.3.2"


@dataclasses.dataclass(frozen=True)
class Config:
    """Max pooling.

    Attributes:
      name: The pooling.
    """

    name: str = setting("maximum")


def build(config: Config, depth: int) -> PlainPooling:
    """Builds the pooling."""
    return PlainPooling(maximum_pooling)
