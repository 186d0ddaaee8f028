"""Captions: what all data sets of pictures and their texts share."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from attention_jax.configuration import setting
from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Split
from attention_jax.data.field import SOURCE_AXIS, Field
from attention_jax.data.pictures import (
    CHANNELS,
    Canvas,
    Cells,
    cell_boxes,
    from_cells,
    read_picture,
    to_cells,
)
from attention_jax.errors import DataError

# Extras of examples, by which the data tells where in a picture each symbol of a caption is: left,
# top, right and bottom in pixels, `T 4`; zeros for symbols that are nowhere.
GOLD_BOXES = "gold_boxes"
UNITS = ("words", "characters", "symbols")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pixels:
    """What data sets of pictures have that are given by their pixels.

    Attributes:
      height: Pixels that pictures are high; those of files are scaled to it.
      cell: Pixels of a side of the square cells that attention is to.
      colours: `grey`, or `rgb` for red, green and blue.
    """

    height: int = setting(32, at_least=4)
    cell: int = setting(8, choices=(4, 8, 16))
    colours: str = setting("grey", choices=tuple(CHANNELS))

    def __post_init__(self) -> None:
        """Rejects pictures that are no whole number of cells high."""
        if self.height % self.cell:
            raise ValueError(
                f"height: expected a multiple of cell ({self.cell}), found {self.height}"
            )

    @property
    def rows(self) -> int:
        """Cells of a column of a picture."""
        return self.height // self.cell

    @property
    def picture_sizes(self) -> Mapping[str, int]:
        """What an input of pixels and an encoder of grids have to agree with."""
        return {"rows": self.rows, "cell": self.cell, "channels": CHANNELS[self.colours]}

    def read_file(self, path: str) -> Cells:
        """Reads an image, in the height and colours of the data."""
        return to_cells(read_picture(path, self.colours, self.height), self.cell)

    def canvas(self, cells: Cells) -> Canvas:
        """Returns the picture."""
        pixels = from_cells(cells, self.rows, self.cell)
        return Canvas.of(pixels, cell_boxes(len(cells), self.rows, self.cell))


@dataclasses.dataclass(frozen=True, kw_only=True)
class CaptionConfig(DataConfig):
    """What every data set of captions has.

    Attributes:
      caption_units: What captions are written in: `words`, `characters`, or `symbols` that spaces
        separate.
      bleu_tokenizer: How BLEU splits captions into words; see `TranslationConfig`.
    """

    task: ClassVar[str] = "caption"
    caption_units: str = setting("words", choices=UNITS)
    bleu_tokenizer: str = setting("13a", choices=("13a", "intl", "zh", "char", "none"))

    @property
    def units(self) -> tuple[str, str]:  # type: ignore[override]
        """Kinds of the symbols: a picture's text is its name, which is not read."""
        return "names", self.caption_units

    def further_scores(self, split: Split, outputs: Sequence[str]) -> Mapping[str, float]:
        """Returns scores of outputs that only this data set has."""
        return {}

    def read_files(self, paths: Sequence[str | Path]) -> list[Cells]:
        """Reads what is described from files, each file once.

        Raises:
          DataError: Naming the file that is not as this data set has them.
        """
        return read_once(paths, self.read_file)

    def read_file(self, path: str) -> Cells:
        """Reads the cells of one file; see `read_files`."""
        raise NotImplementedError

    def canvas(self, cells: Cells) -> Canvas:
        """Returns what attention to cells is drawn on."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, kw_only=True)
class PictureConfig(Pixels, CaptionConfig):
    """What every data set of pictures and captions has; see `Pixels` and `CaptionConfig`."""

    @property
    def source_sizes(self) -> Mapping[str, Mapping[str, int]]:  # type: ignore[override]
        """The picture is the source."""
        return {PICTURE.name: self.picture_sizes}

    def gold_links(self, split: Split) -> list[np.ndarray] | None:
        """Links each symbol that has a rectangle to the cells that this touches."""
        if GOLD_BOXES not in split.extras:
            return None
        return [*map(np.argwhere, gold_cells(split, range(len(split)), self))]


def _write(array: np.ndarray, row: int, cells: np.ndarray) -> None:
    most = np.float32(255 if cells.dtype == np.uint8 else 1)
    array[row, : len(cells), : cells.shape[1]] = cells / most


# What is described, `N P`: pixels of cells as numbers from 0 to 1, or vectors as they are.
PICTURE = Field(
    name="source", axes=(SOURCE_AXIS, "pixels"), dtype=np.float32, mask="source_mask",
    write=_write, fingerprint=np.ndarray.tobytes, is_input=True,
)  # fmt: skip


# A picture that stands beside a source, of which that is the text.
BESIDE = dataclasses.replace(
    PICTURE, name="picture", axes=("cells", "pixels"), mask="picture_mask"
)


def read_once(paths: Sequence[str | Path], read: Callable[[str], Cells]) -> list[Cells]:
    """Reads files, each of them once however often it is named."""
    known: dict[str, Cells] = {}
    for path in map(str, paths):
        if path not in known:
            known[path] = read(path)
    return [known[str(path)] for path in paths]


def gold_cells(
    split: Split, indices: Iterable[int], data_config: PictureConfig
) -> Iterator[Bool[np.ndarray, "T N"]]:
    """Yields, for examples of a split, which cells the rectangle of each symbol touches.

    Cells are coarser than rectangles, so that one at the edge counts as inside.
    """
    for index in indices:
        number = len(split.extras[PICTURE.name][index])
        cells = cell_boxes(number, data_config.rows, data_config.cell)[None]  # 1 N 4
        boxes = np.asarray(split.extras[GOLD_BOXES][index])[:, None]  # T 1 4
        begins = np.maximum(boxes[..., :2], cells[..., :2])
        ends = np.minimum(boxes[..., 2:], cells[..., 2:])
        yield (ends > begins).all(axis=-1)


def checked_caption(caption: str, where: str) -> str:
    """Returns a caption with single spaces.

    Raises:
      DataError: If nothing is left of it, or no file of text could hold it.
    """
    caption = " ".join(caption.split())
    if not caption:
        raise DataError(f"{where}: expected a caption, found an empty one")
    if "\0" in caption:  # which JSON can have
        raise DataError(f"{where}: expected a caption, found a NUL character in it")
    return caption
