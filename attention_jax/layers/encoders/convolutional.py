"""Convolutions without pooling: one stack makes keys, a shallower one makes values.

  e_j = E x_j + P_j
  keys = CNN-a(e), values = CNN-c(e)
  each layer of a stack:  x <- tanh(convolution(x) + x)

L layers of width k see L (k - 1) + 1 tokens. CNN-a is L layers of depth `hidden_dim` between a
projection from the embedding's depth and one back to it; CNN-c stays at that depth.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp

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
from attention_jax.ops.convolutions import convolve
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.products import add_bias
from attention_jax.types import Array, Call, Params

PAPER = "Gehring, Auli, Grangier and Dauphin (2017), A convolutional encoder model, section 3.2"


@dataclasses.dataclass(frozen=True)
class Config:
    """The convolutional encoder.

    Differs from the authors' program in that the last layer of a stack has a residual connection
    too, as the paper's text has it; the program leaves it out there. The projections are there
    whatever the two depths; the program has none where these are equal.

    Attributes:
      name: The encoder.
      hidden_dim: Depth of the layers that make keys.
      key_layers: How many layers CNN-a has.
      value_layers: How many layers CNN-c has.
      kernel_width: How many neighbouring places a layer sees (3 in the paper), an odd number.
      positions: What is added to tokens: `learned` positions as in the paper, `sinusoidal` ones,
        or `none`.
      max_positions: How many positions are learned; later ones share the last.
    """

    name: str = setting("convolutional")
    hidden_dim: int = setting(256, at_least=1)
    key_layers: int = setting(4, at_least=1)
    value_layers: int = setting(2, at_least=1)
    kernel_width: int = setting(3, at_least=1)
    positions: str = setting("learned", choices=POSITIONS)
    max_positions: int = setting(MAX_POSITIONS, at_least=1)

    def __post_init__(self) -> None:
        """Rejects a window without a middle, and fields that would change nothing."""
        if self.kernel_width % 2 == 0:
            raise ValueError(f"kernel_width: expected an odd number, found {self.kernel_width}")
        check_positions(self.positions, self.max_positions)


def build(config: Config, input_dim: int, attention: Any = None) -> "ConvolutionalEncoder":
    """Builds the encoder for embedded tokens of the given depth."""
    return ConvolutionalEncoder(config, input_dim)


@dataclasses.dataclass(frozen=True)
class ConvolutionalEncoder(DepthKeepingEncoder):
    """Convolutional encoder as pure functions."""

    makes_keys = True

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config, outer = self.config, self.input_dim
        inner, width = config.hidden_dim, config.kernel_width
        return {
            **position_parameters(config.positions, config.max_positions, outer),
            "key_input": affine(embed=outer, hidden=inner),
            **{
                f"key_layer_{layer}": affine(kernel=width * inner, hidden=inner)  # W D F as WD F
                for layer in range(config.key_layers)
            },
            "key_output": affine(hidden=inner, embed=outer),
            **{
                f"value_layer_{layer}": affine(kernel=width * outer, embed=outer)
                for layer in range(config.value_layers)
            },
        }

    def encode(self, params: Params, embedded: Array, mask: Array, call: Call = Call()) -> Encoded:
        """Runs both stacks, CNN-a for the keys and CNN-c for the values."""
        config = self.config
        embedded = add_positions(config.positions, params, embedded, mask)
        # CNN-a works at a depth of its own, between two projections.
        keys = _project(params["key_input"], embedded)
        for layer in range(config.key_layers):
            keys = _layer(params[f"key_layer_{layer}"], keys, mask)
        keys = _project(params["key_output"], keys)
        # CNN-c reads the same tokens, at the depth that they have.
        values = embedded
        for layer in range(config.value_layers):
            values = _layer(params[f"value_layer_{layer}"], values, mask)
        # Biases have filled the padding.
        return Encoded(zero_padding(keys, mask), mask, values=zero_padding(values, mask))


def _project(params: Params, values: Array) -> Array:
    return add_bias(values @ params["kernel"], params["bias"])


def _layer(params: Params, values: Array, mask: Array) -> Array:
    # The residual connection is inside of the tanh.
    return jnp.tanh(convolve(values, params["kernel"], params["bias"], mask) + values)
