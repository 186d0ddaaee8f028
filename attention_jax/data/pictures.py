"""Pictures: files read and checked, and cut into cells, column by column (`ops/grids.py`).

A picture is an array `H W C` of bytes, and its cells are `N P`: of each cell the pixels column by
column, with the channels of a pixel together.
"""

import dataclasses
import struct
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, Num, UInt8

from attention_jax.errors import DataError

Picture = UInt8[np.ndarray, "H W C"]
Cells = Num[np.ndarray, "N P"]  # bytes of pixels, or features of another network

CHANNELS = {"grey": 1, "rgb": 3}
_MODES = {"grey": "L", "rgb": "RGB"}
# What Pillow can turn into bytes of grey or of colours; others hold numbers of another range.
_CONVERTED = frozenset({"1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr"})
_MOST_PIXELS = 2**26
_WHITE = 255


@dataclasses.dataclass(frozen=True, eq=False)
class Canvas:
    """What attention is drawn on: a picture, and where each position of the source is in it.

    Of sound it is the spectrogram, in which time runs from left to right.

    Attributes:
      pixels: `H W 3`.
      boxes: `N 4`, left, top, right and bottom of each position, in pixels.
      seconds: How much time there is from left to right; none in what is only seen.
      starts: When words begin in truth, in seconds; empty where that is not known.
      sound: Returns what is heard, as a WAV file; None where nothing is, or too much.
    """

    pixels: Picture
    boxes: Int[np.ndarray, "N 4"]
    seconds: float = 0.0
    starts: Sequence[float] = ()
    sound: Callable[[], bytes] | None = None

    @classmethod
    def of(cls, picture: Picture, boxes: Int[np.ndarray, "N 4"]) -> "Canvas":
        """Returns a canvas of a picture in grey or in colours."""
        colours = np.broadcast_to(picture, (*picture.shape[:2], 3))
        return cls(np.ascontiguousarray(colours), boxes)

    @property
    def places(self) -> list[str]:
        """What positions are called: when they begin, or their numbers where there is no time."""
        number = len(self.boxes)
        if not self.seconds:
            return [f"{place}" for place in range(number)]
        return [f"{self.seconds * place / number:.2f} s" for place in range(number)]


def read_picture(path: str | Path, colours: str, height: int = 0) -> Picture:
    """Reads an image file, such as PNG or JPEG; what is transparent becomes white.

    A photograph is turned as its EXIF data say that the camera was held.

    Args:
      path: The file.
      colours: `grey` or `rgb`.
      height: Pixels that it is scaled to, its width in proportion; 0 leaves it as it is.

    Raises:
      DataError: Naming the file, if it is missing, broken, empty or of numbers that are no bytes.
    """
    # Imported here, so that programs which see no pictures do not wait for it.
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                _check_mode(path, image)
                image = _upright(image)
                if "A" in image.getbands() or "transparency" in image.info:
                    image = _on_white(image.convert("RGBA"))
                image = image.convert(_MODES[colours])
                if height and image.height != height:
                    width = max(1, round(image.width * height / image.height))
                    image = image.resize((width, height), Image.Resampling.BILINEAR)
                pixels = np.array(image, np.uint8)
    except FileNotFoundError:
        raise DataError(f"{path}: expected an image, found no such file") from None
    except UnidentifiedImageError:
        raise DataError(f"{path}: expected an image such as PNG or JPEG, found none") from None
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise DataError(f"{path}: expected an image of fewer pixels") from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:  # Pillow's, of broken files
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: expected an image, found a broken one ({reason})") from None
    return pixels.reshape(*pixels.shape[:2], CHANNELS[colours])


def _check_mode(path: str | Path, image: Any) -> None:
    if image.mode not in _CONVERTED:
        known = ", ".join(sorted(_CONVERTED))
        raise DataError(f"{path}: expected an image of mode {known}, found {image.mode}")
    if image.width * image.height > _MOST_PIXELS:
        raise DataError(
            f"{path}: expected an image of at most {_MOST_PIXELS:,} pixels, found "
            f"{image.width} x {image.height}"
        )


def _upright(image: Any) -> Any:
    """Turns an image upright, where it says how; one whose EXIF data are damaged stays as it is."""
    from PIL import ImageOps

    image.load()  # which raises what is wrong with the pixels
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's, of tags that nobody asks for
            return ImageOps.exif_transpose(image)
    except (SyntaxError, ValueError, struct.error):
        return image


def _on_white(image: Any) -> Any:
    from PIL import Image

    ground = Image.new("RGBA", image.size, (_WHITE,) * 4)
    return Image.alpha_composite(ground, image)


def to_cells(picture: Picture, cell: int) -> Cells:
    """Cuts a picture into square cells; white is added at the right and below to whole ones."""
    height, width, channels = picture.shape
    missing = ((0, -height % cell), (0, -width % cell), (0, 0))
    picture = np.pad(picture, missing, constant_values=_WHITE)
    rows, columns = picture.shape[0] // cell, picture.shape[1] // cell
    # R y C x D -> C R x y D, so that the cells of a column follow one another
    apart = picture.reshape(rows, cell, columns, cell, channels).transpose(2, 0, 3, 1, 4)
    return np.ascontiguousarray(apart).reshape(columns * rows, cell * cell * channels)


def from_cells(cells: Cells, rows: int, cell: int) -> Picture:
    """Puts cells together again: undoes `to_cells`, but for the white that it adds."""
    number, values = cells.shape
    columns, channels = number // rows, values // cell**2
    apart = cells.reshape(columns, rows, cell, cell, channels)
    return apart.transpose(1, 3, 0, 2, 4).reshape(rows * cell, columns * cell, channels)


def cell_boxes(number: int, rows: int, cell: int) -> Int[np.ndarray, "N 4"]:
    """Returns left, top, right and bottom of each cell, in pixels."""
    column, row = np.divmod(np.arange(number), rows)
    corner = cell * np.stack([column, row], axis=-1)
    return np.concatenate([corner, corner + cell], axis=-1)
