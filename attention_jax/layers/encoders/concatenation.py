"""The sentence as the matrix of its embedded tokens, one beside the other: nothing is mixed.

  h_j = E x_j + P_j

Attention then is to word types at positions, and to word types alone where there are no positions:
two tokens of one type get equal weights.
"""

import dataclasses
from typing import Any

from attention_jax.configuration import setting
from attention_jax.layers.absolute_positions import (
    MAX_POSITIONS,
    POSITIONS,
    add_positions,
    check_positions,
    position_parameters,
)
from attention_jax.layers.encoder import DepthKeepingEncoder, Encoded
from attention_jax.types import Array, Call, Params

PAPER = "None; the values of the pooling encoder of Gehring et al. (2017), section 3.1, alone"


@dataclasses.dataclass(frozen=True)
class Config:
    """Embedded tokens and their positions.

    Attributes:
      name: The encoder.
      positions: What is added: `learned` or `sinusoidal` positions, or `none`.
      max_positions: How many positions are learned; later ones share the last.
    """

    name: str = setting("concatenation")
    positions: str = setting("learned", choices=POSITIONS)
    max_positions: int = setting(MAX_POSITIONS, at_least=1)

    def __post_init__(self) -> None:
        """Rejects fields that would change nothing."""
        check_positions(self.positions, self.max_positions)


def build(config: Config, input_dim: int, attention: Any = None) -> "ConcatenationEncoder":
    """Builds the encoder for embedded tokens of the given depth."""
    return ConcatenationEncoder(config, input_dim)


@dataclasses.dataclass(frozen=True)
class ConcatenationEncoder(DepthKeepingEncoder):
    """Embedded tokens as annotations, in pure functions."""

    is_causal = True

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config = self.config
        return position_parameters(config.positions, config.max_positions, self.input_dim)

    def encode(self, params: Params, embedded: Array, mask: Array, call: Call = Call()) -> Encoded:
        """Adds positions to embedded tokens."""
        return Encoded(add_positions(self.config.positions, params, embedded, mask), mask)
