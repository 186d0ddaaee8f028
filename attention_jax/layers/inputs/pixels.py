"""Pixels: a small convolutional network makes one vector of each cell of a picture.

  x_0 = 2 pixels - 1;   x_l = relu(convolution(x_{l-1})), every second place
  e = layer_norm(convolution(x_L))

A picture is a sequence of square cells (`ops/grids.py`), `B N P`, and each layer halves it, until a
cell is one place. What a vector is made of reaches a little beyond its cell. Patches, which do not,
are what the input `frames` makes of the same cells (Dosovitskiy et al. 2021, section 3.1).

Layers make numbers smaller, and training makes them much larger; normalised, they are neither lost
beside the codes of positions nor so large that all that reads them saturates.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax

from attention_jax.configuration import setting
from attention_jax.errors import ConfigError
from attention_jax.layers.input import Embedded, Input, InputSizes
from attention_jax.layers.parameters import affine, layer_norm_parameters
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.grids import as_grid, as_pixels, as_sequence, convolve_grid
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.normalization import layer_norm
from attention_jax.types import Batch, Call, Params

PAPER = "Xu et al. (2015), section 3.1.1: annotations of a convolutional network, here a small one"
CELLS = (4, 8, 16)  # as many layers as it takes to halve a cell to one place
_WIDTH = 3


@dataclasses.dataclass(frozen=True)
class Config:
    """A convolutional network over the pixels of a picture.

    Differs from the paper's, which is the 16-layer VGG network trained on ImageNet: two to four
    layers, which learn with everything else, and a layer normalization.

    Attributes:
      name: The input.
      rows: Cells of a column of the picture.
      cell: Pixels of a side of a cell.
      channels: Numbers of a pixel: 1 if it is grey, 3 if it is red, green and blue.
      filters: Of the first layer; each has twice as many as the one before.
      embedding_dim: Of the last layer instead: depth of a cell's vector.
    """

    name: str = setting("pixels")
    rows: int = setting(4, at_least=1)
    cell: int = setting(8, choices=CELLS)
    channels: int = setting(1, choices=(1, 3))
    filters: int = setting(16, at_least=1)
    embedding_dim: int = setting(128, at_least=1)


def build(config: Config, sizes: InputSizes) -> "PixelInput":
    """Builds the input."""
    return PixelInput(sizes, config)


@dataclasses.dataclass(frozen=True)
class PixelInput(Input):
    """Pixels as pure functions.

    Attributes:
      sizes: What it fits.
      config: Sizes of pictures and layers.
    """

    sizes: InputSizes
    config: Config

    @property
    def depth(self) -> int:  # type: ignore[override]
        """Of a cell's vector."""
        return self.config.embedding_dim

    @property
    def fields(self) -> tuple[str, ...]:
        """Cells `B N P`, of numbers from 0 to 1, and where they are real."""
        return self.sizes.name, f"{self.sizes.name}_mask"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """A convolution for each halving, and the normalisation of the last."""
        config = self.config
        widths = [config.filters * 2**layer for layer in range(self.layers - 1)]
        depths = [config.channels, *widths, config.embedding_dim]
        convolutions = {
            f"convolution_{layer}": affine(kernel=_WIDTH**2 * depths[layer], embed=after)
            for layer, after in enumerate(depths[1:])
        }
        return {**convolutions, "norm": layer_norm_parameters(config.embedding_dim)}

    @property
    def layers(self) -> int:
        """Convolutions that it takes to halve a cell, a power of two, to one place."""
        return self.config.cell.bit_length() - 1

    @property
    def cell_values(self) -> int:
        """P, numbers of a cell."""
        return self.config.cell**2 * self.config.channels

    def embed(self, params: Params, batch: Batch, call: Call = Call()) -> Embedded:
        """Turns the pixels of each cell, and some around it, into a vector.

        Raises:
          ConfigError: If cells have another number of pixels.
        """
        cells, mask = (batch[field] for field in self.fields)
        if cells.ndim != 3 or cells.shape[-1] != self.cell_values:
            raise ConfigError(
                f"config.model.sources.{self.sizes.name}.input: expected cells of "
                f"{self.cell_values} numbers, as cell={self.config.cell} and "
                f"channels={self.config.channels} have, found an array of shape {cells.shape}"
            )
        cells = 2 * cells.astype(params["convolution_0"]["kernel"].dtype) - 1
        grid, real = as_grid(cells, mask, self.config.rows)  # B C R P
        picture = as_pixels(grid, self.config.cell)
        for layer in range(self.layers):
            weights = params[f"convolution_{layer}"]
            picture = jax.nn.relu(picture) if layer else picture
            picture = convolve_grid(picture, weights["kernel"], weights["bias"], stride=2)
            # Beyond the picture are zeros, as they are around it.
            picture = zero_padding(picture, _enlarged(real, picture.shape[2]))
        vectors = layer_norm(as_sequence(picture, cells.shape[1]), **params["norm"])
        vectors = zero_padding(vectors, mask)
        kept = dropout_factors(call, self.sizes.dropout, vectors.shape, vectors.dtype)
        return Embedded(scale(vectors, kept), mask, mask, {})


def _enlarged(mask: jax.Array, rows: int) -> jax.Array:
    """Repeats the mask of cells for all places of each, where a column has so many rows."""
    times = rows // mask.shape[2]
    return mask.repeat(times, axis=1).repeat(times, axis=2)
