"""Max pooling: the largest value of each feature of the annotations."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from attention_jax.configuration import setting
from attention_jax.layers.pooling import Pooling
from attention_jax.ops.pooling import Pooled, maximum_pooling
from attention_jax.types import Array, Call, Params

PAPER = "Yang et al. (2016), section 3.2, HN-MAX; Collobert et al. (2011), section 3.3.2"


@dataclasses.dataclass(frozen=True)
class Config:
    """Max pooling.

    Attributes:
      name: The pooling.
    """

    name: str = setting("maximum")


def build(config: Config, depth: int) -> "MaximumPooling":
    """Builds the pooling."""
    return MaximumPooling()


@dataclasses.dataclass(frozen=True)
class MaximumPooling(Pooling):
    """Max pooling as pure functions, without parameters."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """None."""
        return {}

    def pool(
        self, params: Params, values: Array, mask: Array, call: Call = Call()
    ) -> Pooled:
        """Pools the annotations."""
        return maximum_pooling(values, mask)
