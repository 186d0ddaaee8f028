"""Gated convolutions: the encoder of ConvS2S.

  e_j = E x_j + P_j;   x = e W_in + b_in
  each layer:  x <- (GLU(convolution(x)) + x) sqrt(1/2)
  keys = z = x W_out + b_out,  values = z + e

A value is what stands around its token and the token itself.
"""

import dataclasses
import math
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
from attention_jax.layers.parameters import affine
from attention_jax.ops.convolutions import convolve, gated_linear_unit
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.products import add_bias
from attention_jax.types import Array, Call, Params

PAPER = "Gehring et al. (2017), Convolutional sequence to sequence learning, sections 3.1 to 3.4"


@dataclasses.dataclass(frozen=True)
class Config:
    """The encoder of ConvS2S.

    Differs from the paper in that weights are not normalised, and start as other matrices do.

    Attributes:
      name: The encoder.
      hidden_dim: Depth of the layers (512 in the paper).
      num_layers: How many layers are stacked (20 in the paper, for English to Romanian).
      kernel_width: How many neighbouring places a layer sees (3 in the paper), an odd number.
      positions: What is added to tokens: `learned` positions as in the paper, `sinusoidal` ones,
        or `none`.
      max_positions: How many positions are learned; later ones share the last.
      dropout: Share of a layer's input that is dropped.
    """

    name: str = setting("gated_convolutional")
    hidden_dim: int = setting(256, at_least=1)
    num_layers: int = setting(4, at_least=1)
    kernel_width: int = setting(3, at_least=1)
    positions: str = setting("learned", choices=POSITIONS)
    max_positions: int = setting(MAX_POSITIONS, at_least=1)
    dropout: float = setting(0.0, at_least=0.0, below=1.0)

    def __post_init__(self) -> None:
        """Rejects a window without a middle, and fields that would change nothing."""
        if self.kernel_width % 2 == 0:
            raise ValueError(f"kernel_width: expected an odd number, found {self.kernel_width}")
        check_positions(self.positions, self.max_positions)


def build(config: Config, input_dim: int, attention: Any = None) -> "GatedConvolutionalEncoder":
    """Builds the encoder for embedded tokens of the given depth."""
    return GatedConvolutionalEncoder(config, input_dim)


@dataclasses.dataclass(frozen=True)
class GatedConvolutionalEncoder(DepthKeepingEncoder):
    """ConvS2S's encoder as pure functions."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config, outer, inner = self.config, self.input_dim, self.config.hidden_dim
        # Twice as wide as its input: a gated linear unit halves it.
        layer = affine(kernel=config.kernel_width * inner, gates=2 * inner)
        return {
            **position_parameters(config.positions, config.max_positions, outer),
            "input": affine(embed=outer, hidden=inner),
            "output": affine(hidden=inner, embed=outer),
            **{f"layer_{number}": layer for number in range(config.num_layers)},
        }

    def encode(self, params: Params, embedded: Array, mask: Array, call: Call = Call()) -> Encoded:
        """Runs the stack of gated convolutions."""
        config = self.config
        embedded = add_positions(config.positions, params, embedded, mask)
        hidden = add_bias(embedded @ params["input"]["kernel"], params["input"]["bias"])
        for layer in range(config.num_layers):
            weights = params[f"layer_{layer}"]
            factors = dropout_factors(
                call.fold(layer), config.dropout, hidden.shape, hidden.dtype
            )
            product = convolve(scale(hidden, factors), weights["kernel"], weights["bias"], mask)
            # Halves the variance of the sum, so that it does not grow with the number of layers.
            hidden = (gated_linear_unit(product) + hidden) * math.sqrt(0.5)
        keys = add_bias(hidden @ params["output"]["kernel"], params["output"]["bias"])
        keys = zero_padding(keys, mask)
        return Encoded(keys, mask, values=keys + embedded)  # z + e; both are zeros at padding
