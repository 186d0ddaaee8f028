"""Average pooling: the mean of all annotations, each of one weight."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from attention_jax.configuration import setting
from attention_jax.layers.pooling import Pooling
from attention_jax.ops.pooling import Pooled, average_pooling
from attention_jax.types import Array, Call, Params

PAPER = "Yang et al. (2016), section 3.2, HN-AVE"


@dataclasses.dataclass(frozen=True)
class Config:
    """Average pooling.

    Attributes:
      name: The pooling.
    """

    name: str = setting("average")


def build(config: Config, depth: int) -> "AveragePooling":
    """Builds the pooling."""
    return AveragePooling()


@dataclasses.dataclass(frozen=True)
class AveragePooling(Pooling):
    """Average pooling as pure functions, without parameters."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """None."""
        return {}

    def pool(
        self, params: Params, values: Array, mask: Array, call: Call = Call()
    ) -> Pooled:
        """Pools the annotations."""
        return average_pooling(values, mask)
