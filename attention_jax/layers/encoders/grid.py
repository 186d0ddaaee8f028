"""Convolutions over a grid of cells, as those of a picture, which keep it: a slot for each cell.

  x_0[c, r] = e_j + P[c, r],   position j = c R + r
  x_l = x_{l-1} + relu(convolution(x_{l-1}));   annotations layer_norm(x_L)

Attention then is to places of the picture, and what stands around them.
"""

import dataclasses
from typing import Any

import jax

from attention_jax.configuration import setting
from attention_jax.layers.encoder import DepthKeepingEncoder, Encoded
from attention_jax.layers.parameters import affine, layer_norm_parameters
from attention_jax.ops.grids import as_grid, as_sequence, convolve_grid, grid_positions
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.normalization import layer_norm
from attention_jax.types import Array, Call, Params

PAPER = "He, Zhang, Ren and Sun (2016), Deep residual learning, eq. 1, with one convolution a block"


@dataclasses.dataclass(frozen=True)
class Config:
    """Residual convolutions over cells.

    Attributes:
      name: The encoder.
      rows: Cells of a column.
      num_layers: How many convolutions.
      kernel_width: Cells of a side of the square that each sees, an odd number.
      positions: What is added at first: `sinusoidal`, of column and row, or `none`.
    """

    name: str = setting("grid")
    rows: int = setting(4, at_least=1)
    num_layers: int = setting(2, at_least=1)
    kernel_width: int = setting(3, at_least=1)
    positions: str = setting("sinusoidal", choices=("sinusoidal", "none"))

    def __post_init__(self) -> None:
        """Rejects a window without a middle."""
        if self.kernel_width % 2 == 0:
            raise ValueError(f"kernel_width: expected an odd number, found {self.kernel_width}")


def build(config: Config, input_dim: int, attention: Any = None) -> "GridEncoder":
    """Builds the encoder for vectors of the given depth."""
    return GridEncoder(config, input_dim)


@dataclasses.dataclass(frozen=True)
class GridEncoder(DepthKeepingEncoder):
    """Convolutions over a grid as pure functions."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        depth, places = self.input_dim, self.config.kernel_width**2
        layers = {
            f"layer_{layer}": affine(kernel=places * depth, embed=depth)
            for layer in range(self.config.num_layers)
        }
        return {**layers, "norm": layer_norm_parameters(depth)}

    def encode(self, params: Params, embedded: Array, mask: Array, call: Call = Call()) -> Encoded:
        """Adds positions and convolves; beyond the picture are zeros, as they are around it."""
        grid, real = as_grid(embedded, mask, self.config.rows)  # B C R D
        if self.config.positions == "sinusoidal":
            grid = grid + grid_positions(*grid.shape[1:]).astype(grid.dtype)
        grid = zero_padding(grid, real)
        for layer in range(self.config.num_layers):
            weights = params[f"layer_{layer}"]
            seen = convolve_grid(grid, weights["kernel"], weights["bias"])
            grid = zero_padding(grid + jax.nn.relu(seen), real)
        annotations = layer_norm(as_sequence(grid, embedded.shape[1]), **params["norm"])
        return Encoded(zero_padding(annotations, mask), mask)
