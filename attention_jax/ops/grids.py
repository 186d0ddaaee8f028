"""Grids: pictures as sequences of cells, column by column, and convolutions over them.

A picture of R rows and C columns of cells is the sequence of its columns, each from top to bottom:
cell (row r, column c) is position c R + r. Pictures of one height and any width then differ in
length alone, and their padding is columns at the right.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention_jax.ops.masks import zero_padding
from attention_jax.ops.positions import sinusoidal_positions
from attention_jax.ops.products import add_bias


def as_grid(
    vectors: Float[Array, "B N D"], mask: Bool[Array, "B N"], rows: int
) -> tuple[Float[Array, "B C {rows} D"], Bool[Array, "B C {rows}"]]:
    """Sets a sequence of cells out as columns; an unfinished last column is filled with padding.

    Args:
      vectors: Of the cells; what stands at padding becomes zeros.
      mask: True at real cells.
      rows: R, cells of a column.
    """
    missing = -vectors.shape[1] % rows
    vectors = jnp.pad(zero_padding(vectors, mask), ((0, 0), (0, missing), (0, 0)))
    mask = jnp.pad(mask, ((0, 0), (0, missing)))
    batch, number, depth = vectors.shape
    columns = number // rows
    return vectors.reshape(batch, columns, rows, depth), mask.reshape(batch, columns, rows)


def as_sequence(grid: Float[Array, "B C R D"], length: int) -> Float[Array, "B {length} D"]:
    """Undoes `as_grid` for a sequence of this length."""
    batch, columns, rows, depth = grid.shape
    return grid.reshape(batch, columns * rows, depth)[:, :length]


def as_pixels(
    grid: Float[Array, "B C R P"], cell: int
) -> Float[Array, "B {cell}*C {cell}*R _"]:
    """Puts the pixels of cells side by side: a picture, its columns before its rows.

    Args:
      grid: Cells, the pixels of each column by column, with the channels of a pixel together.
      cell: Pixels of a side of a cell.
    """
    batch, columns, rows, values = grid.shape
    channels = values // cell**2
    pixels = grid.reshape(batch, columns, rows, cell, cell, channels)
    # B C R x y D -> B C x R y D
    return pixels.swapaxes(2, 3).reshape(batch, columns * cell, rows * cell, channels)


def convolve_grid(
    grid: Float[Array, "B C R D"],
    kernel: Float[Array, "WWD F"],
    bias: Float[Array, " F"],
    stride: int = 1,
) -> Float[Array, "B C2 R2 F"]:
    """Convolution over a grid with zeros around it: every output sees W x W places.

      output[c, r] = bias + sum_uv kernel[u, v]^T grid[s c + u - p, s r + v - p]

    Args:
      grid: Zeros at padding.
      kernel: One `D F` block for each of W x W places, of which W is odd, one below the other.
      bias: Added at every place.
      stride: s, places from one output to the next; p is (W - 1) / 2 for 1, and (W - 2) / 2 rounded
        down for 2, where the sizes are even.
    """
    depth = grid.shape[-1]
    width = round((kernel.shape[0] // depth) ** 0.5)
    product = jax.lax.conv_general_dilated(
        grid,
        kernel.reshape(width, width, depth, -1),
        window_strides=(stride, stride),
        padding="SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return add_bias(product, bias)


def grid_positions(columns: int, rows: int, depth: int) -> Float[Array, "{columns} {rows} {depth}"]:
    """Sinusoidal positions in two dimensions: codes of the column, and after them of the row.

    Each has half of the channels, the column one more where their number is odd.
    """
    of_row = depth // 2
    across = sinusoidal_positions(jnp.arange(columns), depth - of_row)[:, None]  # C 1 D/2
    down = sinusoidal_positions(jnp.arange(rows), of_row)[None]  # 1 R D/2
    shape = (columns, rows)
    parts = [jnp.broadcast_to(each, (*shape, each.shape[-1])) for each in (across, down)]
    return jnp.concatenate(parts, axis=-1)
