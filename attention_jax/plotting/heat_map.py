"""Attention as pictures: source across, target down, so that what is monotone falls diagonally."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from attention_jax.plotting.figure import (
    INK,
    OUTLINE,
    new_figure,
    printable,
    text_style,
    text_width,
)

CELL = 0.27  # inches
LABEL_SIZE = 8.5
TITLE_SIZE = 10.5
TITLE_ROOM = 0.34
AXIS_SIZE = 6.5
GAP = 0.22
BAR = 0.62
COLOUR_MAP = "Greys"
_UNIT = Normalize(0.0, 1.0)
_ACROSS, _DOWN = "source →", "target ↓"


@dataclasses.dataclass(frozen=True)
class HeatMap:
    """One picture of attention.

    Attributes:
      weights: `T S`, without padding.
      source: S tokens, the columns.
      target: T tokens, the rows.
      title: What stands above it, such as the words themselves.
    """

    weights: Float[np.ndarray, "T S"]
    source: Sequence[str]
    target: Sequence[str]
    title: str = ""

    def __post_init__(self):
        if np.shape(self.weights) != (len(self.target), len(self.source)):
            raise ValueError(
                f"expected weights of shape ({len(self.target)}, {len(self.source)}) for the "
                f"tokens, found {np.shape(self.weights)}"
            )


@dataclasses.dataclass(frozen=True)
class _Extent:
    """What a picture takes up in inches: its cells, and the room that its texts need."""

    cells_width: float
    cells_height: float
    left: float
    top: float
    right: float


def heat_map(
    weights: Float[np.ndarray, "T S"],
    source: Sequence[str],
    target: Sequence[str],
    title: str = "",
) -> Figure:
    """Draws one attention matrix; see `HeatMap` for the arguments."""
    return heat_map_grid([HeatMap(weights, source, target, title)], columns=1)


def heat_map_grid(maps: Sequence[HeatMap], columns: int = 3) -> Figure:
    """Draws several attention matrices with cells of one size and one scale of grey, 0 to 1.

    Args:
      maps: The pictures, filling row after row.
      columns: How many stand side by side.

    Returns:
      The figure, as large as its contents.
    """
    if not maps:
        raise ValueError("expected at least one heat map, found none")
    columns = min(columns, len(maps))
    extents = [_extent(one) for one in maps]
    by_column = [extents[column::columns] for column in range(columns)]
    by_row = [extents[start : start + columns] for start in range(0, len(maps), columns)]
    # Of a column the cells begin, of a row they end their labels, in one line.
    lefts = [max(extent.left for extent in column) for column in by_column]
    widths = [max(extent.right for extent in column) for column in by_column]
    tops = [max(extent.top for extent in row) for row in by_row]
    heights = [max(extent.cells_height for extent in row) for row in by_row]

    width = sum(lefts) + sum(widths) + GAP * (columns + 1) + BAR
    height = sum(tops) + sum(heights) + GAP * (len(by_row) + 1)
    figure = new_figure(width, height)
    for index, (one, extent) in enumerate(zip(maps, extents, strict=True)):
        row, column = divmod(index, columns)
        x = sum(lefts[: column + 1]) + sum(widths[:column]) + GAP * (column + 1)
        y = sum(tops[: row + 1]) + sum(heights[:row]) + GAP * (row + 1)
        _draw(_add_axes(figure, x, y, extent.cells_width, extent.cells_height), one, lefts[column])
    _draw_scale(_add_axes(figure, width - BAR, GAP + tops[0], 0.09, min(heights[0], 1.6)))
    return figure


def _extent(one: HeatMap) -> _Extent:
    source, target = _labels(one.source), _labels(one.target)
    axes_names = text_width([_ACROSS, _DOWN], AXIS_SIZE)
    left = max(text_width(target, LABEL_SIZE), axes_names) + 0.1
    title = text_width([printable(one.title)], TITLE_SIZE) if one.title else 0.0
    cells_width = max(len(source), 1) * CELL
    return _Extent(
        cells_width=cells_width,
        cells_height=max(len(target), 1) * CELL,
        left=left,
        top=_labels_height(source) + (TITLE_ROOM if one.title else 0.0),
        right=max(cells_width, title - left),
    )


def _add_axes(figure: Figure, x: float, y: float, width: float, height: float) -> Axes:
    """Adds axes whose upper left corner is at (x, y) inches from the figure's."""
    across, down = figure.get_size_inches()
    return figure.add_axes((x / across, 1 - (y + height) / down, width / across, height / down))


def _draw(axes: Axes, one: HeatMap, left: float) -> None:
    rows, columns = len(one.target), len(one.source)
    axes.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(rows + 1) - 0.5,
        np.clip(np.asarray(one.weights, np.float64), 0, 1),
        cmap=COLOUR_MAP,
        norm=_UNIT,
        edgecolors="#EFEFEF",
        linewidth=0.4,
    )
    axes.set_xlim(-0.5, max(columns, 1) - 0.5)
    axes.set_ylim(max(rows, 1) - 0.5, -0.5)
    axes.xaxis.tick_top()
    source = _labels(one.source)
    axes.set_xticks(np.arange(columns), source, **text_style(LABEL_SIZE))
    axes.set_yticks(np.arange(rows), _labels(one.target), **text_style(LABEL_SIZE))
    for text, turn in zip(axes.get_xticklabels(), _turned(source), strict=True):
        text.set(rotation=90 if turn else 0, va="bottom", ha="center")
    axes.tick_params(length=0, pad=3)
    _name_axes(axes)
    for spine in axes.spines.values():
        spine.set(color=OUTLINE, linewidth=0.6)
    if one.title:
        axes.annotate(
            printable(one.title),
            xy=(0, 1),
            xytext=(72 * (0.1 - left), 72 * (_labels_height(source) + TITLE_ROOM / 2)),
            xycoords="axes fraction",
            textcoords="offset points",
            va="center",
            **text_style(TITLE_SIZE, fontweight="bold"),
        )


def _name_axes(axes: Axes) -> None:
    """Names the axes in the corner between the labels of columns and of rows."""
    for name, height in ((_ACROSS, 1.5 * AXIS_SIZE), (_DOWN, 2.0)):
        axes.annotate(
            name,
            xy=(0, 1),
            xytext=(-3, height),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            va="bottom",
            **text_style(AXIS_SIZE, alpha=0.7),
        )


def _draw_scale(axes: Axes) -> None:
    bar = axes.figure.colorbar(ScalarMappable(_UNIT, COLOUR_MAP), cax=axes)
    bar.outline.set(edgecolor=OUTLINE, linewidth=0.6)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.tick_params(length=2, labelsize=7.5, color=OUTLINE, labelcolor=INK, pad=2)
    axes.set_title("weight", loc="left", pad=8, **text_style(7.5))


def _turned(labels: Sequence[str]) -> list[bool]:
    """Tells which labels stand on end: those wider than a cell, and all if these are many."""
    wide = [text_width([label], LABEL_SIZE) > CELL for label in labels]
    return [True] * len(labels) if sum(wide) > len(labels) / 4 else wide


def _labels_height(labels: Sequence[str]) -> float:
    turned = [label for label, turn in zip(labels, _turned(labels), strict=True) if turn]
    return max(text_width(turned, LABEL_SIZE), 2 * AXIS_SIZE / 72) + 0.08


def _labels(tokens: Sequence[str]) -> list[str]:
    return [printable(token) for token in tokens]
