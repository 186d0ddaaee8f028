"""Averages of neighbouring embedded tokens as keys, the embedded tokens themselves as values.

  e_j = E x_j + P_j
  keys[j] = 1/k sum_w e_{j + w - (k - 1) / 2},  values[j] = e_j
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
from attention_jax.ops.convolutions import average_window
from attention_jax.ops.masks import zero_padding
from attention_jax.types import Array, Call, Params

PAPER = "Gehring, Auli, Grangier and Dauphin (2017), A convolutional encoder model, section 3.1"


@dataclasses.dataclass(frozen=True)
class Config:
    """The pooling encoder.

    Attributes:
      name: The encoder.
      width: How many neighbouring tokens are averaged (5 in the paper), an odd number.
      positions: What is added to tokens: `learned` positions as in the paper, `sinusoidal` ones,
        or `none`.
      max_positions: How many positions are learned; later ones share the last.
    """

    name: str = setting("average_pooling")
    width: int = setting(5, at_least=1)
    positions: str = setting("learned", choices=POSITIONS)
    max_positions: int = setting(MAX_POSITIONS, at_least=1)

    def __post_init__(self) -> None:
        """Rejects a window without a middle, and fields that would change nothing."""
        if self.width % 2 == 0:
            raise ValueError(f"width: expected an odd number, found {self.width}")
        check_positions(self.positions, self.max_positions)


def build(config: Config, input_dim: int, attention: Any = None) -> "AveragePoolingEncoder":
    """Builds the encoder for embedded tokens of the given depth."""
    return AveragePoolingEncoder(config, input_dim)


@dataclasses.dataclass(frozen=True)
class AveragePoolingEncoder(DepthKeepingEncoder):
    """Pooling encoder as pure functions."""

    makes_keys = True

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config = self.config
        return position_parameters(config.positions, config.max_positions, self.input_dim)

    def encode(self, params: Params, embedded: Array, mask: Array, call: Call = Call()) -> Encoded:
        """Adds positions, and averages neighbours into keys."""
        values = add_positions(self.config.positions, params, embedded, mask)
        # Zeroed again: windows at the end of a sentence reach into its padding.
        keys = zero_padding(average_window(values, mask, self.config.width), mask)
        return Encoded(keys, mask, values=values)
