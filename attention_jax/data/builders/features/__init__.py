"""features: vectors of the user's own images, such as another network's, with their captions."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from attention_jax.configuration import setting
from attention_jax.data.captioned_files import CaptionedFiles
from attention_jax.data.captions import PICTURE
from attention_jax.data.pictures import Canvas, Cells, cell_boxes
from attention_jax.errors import DataError

_SIDE = 16  # of a position where attention is drawn, in pixels


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(CaptionedFiles):
    """A file of features for each image: an array `H W D`, or `N D` of vectors without a place.

    An array is in a file of NumPy's: `.npy`, or `.npz` with one array. Those of an image may be the
    last convolutional layer of a network that was trained on other images, as in Xu et al. (2015),
    section 3.1.1. The input `frames` reads them. Further fields are those of
    `data.captioned_files.CaptionedFiles`.

    Attributes:
      rows: H; 1 for arrays `N D`, which are a grid of one row.
      depth: D, a multiple of 8, as arrays of batches are.
    """

    name: str = setting("features", choices=("features",))
    rows: int = setting(14, at_least=1)
    depth: int = setting(512, at_least=8)

    def __post_init__(self) -> None:
        """Checks the tables, and the depth."""
        super().__post_init__()
        if self.depth % 8:
            raise ValueError(f"depth: expected a multiple of 8, found {self.depth}")

    @property
    def source_sizes(self) -> Mapping[str, Mapping[str, int]]:  # type: ignore[override]
        """What an input of frames and an encoder of grids have to agree with."""
        return {PICTURE.name: {"rows": self.rows, "frame_dim": self.depth}}

    def read_file(self, path: str) -> Cells:
        """Reads the features of one image, column by column."""
        features = _read_array(path)
        grid = features[None] if features.ndim == 2 else features  # H W D
        if grid.ndim != 3 or len(grid) != self.rows or grid.shape[2] != self.depth or not grid.size:
            raise DataError(
                f"{path}: expected an array of {self.rows} x W x {self.depth} numbers, as "
                f"config.data.rows and config.data.depth say, found one of "
                f"{' x '.join(map(str, features.shape)) or 'none'}"
            )
        with np.errstate(over="ignore"):
            vectors = grid.swapaxes(0, 1).reshape(-1, self.depth).astype(np.float32)
        if not np.isfinite(vectors).all():
            number = int((~np.isfinite(vectors)).sum())
            raise DataError(f"{path}: expected finite numbers, found {number} that are none")
        return vectors

    def canvas(self, cells: Cells) -> Canvas:
        """Returns white ground, for the images themselves are not known."""
        shape = self.rows * _SIDE, len(cells) // self.rows * _SIDE, 3
        return Canvas.of(np.full(shape, 255, np.uint8), cell_boxes(len(cells), self.rows, _SIDE))


def _read_array(path: str) -> np.ndarray:
    """Reads the one array of a file of NumPy's.

    Raises:
      DataError: If the file is missing or broken, or holds something else.
    """
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.lib.npyio.NpzFile):
            with found as archive:
                if len(archive.files) != 1:
                    raise DataError(
                        f"{path}: expected one array, found {len(archive.files)} in the archive"
                    )
                found = archive[archive.files[0]]
    except FileNotFoundError:
        raise DataError(f"{path}: expected features, found no such file") from None
    except DataError:
        raise
    except Exception as error:  # archives have a dozen ways to be damaged, with an exception each
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: expected a file of NumPy's, found another ({reason})") from None
    if found.dtype.kind not in "fiu":
        raise DataError(f"{path}: expected an array of numbers, found one of {found.dtype}")
    return found
