"""Attention as alignment: the weights that translate are those that say the links."""

import dataclasses
from typing import Any

from attention_jax.configuration import setting
from attention_jax.layers.aligner import Aligner, AlignerSizes
from attention_jax.layers.readout import Step
from attention_jax.types import Array, Params

PAPER = "Bahdanau, Cho and Bengio (2015), section 5.2.1"


@dataclasses.dataclass(frozen=True)
class Config:
    """The decoder's own attention.

    Attributes:
      name: The aligner.
    """

    name: str = setting("attention")


def build(config: Config, sizes: AlignerSizes) -> "AttentionAligner":
    """Builds the aligner."""
    return AttentionAligner()


@dataclasses.dataclass(frozen=True)
class AttentionAligner(Aligner):
    """Pure functions of the aligner, which has no parameters."""

    def align(self, params: Params, step: Step, prepared: Any) -> Array:
        """Returns the weights of the decoder's attention."""
        return step.attention.weights
