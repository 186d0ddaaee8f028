"""Attention heat maps: source across, target down, so that monotonic attention is a diagonal."""

import bisect
import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from attention_jax.plotting.figure import (
    ATTENTION_MAP,
    INK,
    OUTLINE,
    new_figure,
    printable,
    text_style,
    text_width,
)

# Lengths are in inches, sizes of type in points.
CELL = 0.27
SMALLEST_CELL = 0.15  # below this, the labels of rows would overlap
PAGE = (16.0, 20.0)  # what a large screen shows
LABEL_SIZE = 8.5
TITLE_SIZE = 10.5
TITLE_ROOM = 0.34
AXIS_SIZE = 6.5
SHORTEST_TITLE = 6.0  # a title may always be this wide, even over few cells
GAP = 0.22
BAR = 0.62  # the scale of weights at the right, with its numbers
_UNIT = Normalize(0.0, 1.0)
_ACROSS, _DOWN = "source →", "target ↓"


@dataclasses.dataclass(frozen=True)
class HeatMap:
    """One attention heat map.

    Attributes:
      weights: `T S`, without padding.
      source: S tokens, the columns.
      target: T tokens, the rows.
      title: Shown above, such as the sentence itself.
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
    """The size of a heat map in inches: its cells, and the room around them for texts."""

    cell: float
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
    """Attention heat map: draws one matrix; see `HeatMap` for the arguments."""
    return heat_map_grid([HeatMap(weights, source, target, title)], columns=1)


def heat_map_grid(maps: Sequence[HeatMap], columns: int = 3) -> Figure:
    """Attention heat maps: draws several with cells of one size and weights of one scale, 0 to 1.

    The figure is as large as its contents need; if that is more than a page, cells are smaller.

    Args:
      maps: The heat maps, which fill row after row.
      columns: How many stand side by side.

    Raises:
      ValueError: If there are none.
    """
    if not maps:
        raise ValueError("expected at least one heat map, found none")
    layout = _arrange(maps, columns, _cell(maps, columns))
    figure = new_figure(layout.width, layout.height)
    for index, (one, extent) in enumerate(zip(maps, layout.extents, strict=True)):
        x, y, left = layout.place(index)
        axes = _add_axes(figure, x, y, extent.cells_width, extent.cells_height)
        _draw(axes, one, extent.cell, left)
    top, height = GAP + layout.tops[0], min(layout.heights[0], 1.6)
    _draw_scale(_add_axes(figure, layout.width - BAR, top, 0.09, height))
    return figure


def that_fit_a_page(maps: Sequence[HeatMap], columns: int = 3) -> Sequence[HeatMap]:
    """Returns as many of the first heat maps as fit a page, at least one."""
    for number in range(len(maps), 1, -1):
        if _arrange(maps[:number], columns, SMALLEST_CELL).fits:
            return maps[:number]
    return maps[:1]


@dataclasses.dataclass(frozen=True)
class _Layout:
    """The places of all heat maps of a grid, in inches.

    Attributes:
      extents: The size of every heat map.
      lefts: For every column, the room for labels left of its cells.
      widths: For every column, the width of its cells or titles, whichever is larger.
      tops: For every row of heat maps, the room for titles and labels above its cells.
      heights: For every row of heat maps, the height of its cells.
    """

    extents: Sequence[_Extent]
    lefts: Sequence[float]
    widths: Sequence[float]
    tops: Sequence[float]
    heights: Sequence[float]

    @property
    def width(self) -> float:
        """Width of the whole figure."""
        return sum(self.lefts) + sum(self.widths) + GAP * (len(self.widths) + 1) + BAR

    @property
    def height(self) -> float:
        """Height of the whole figure."""
        return sum(self.tops) + sum(self.heights) + GAP * (len(self.tops) + 1)

    @property
    def fits(self) -> bool:
        """Whether the figure is at most as large as a page."""
        return self.width <= PAGE[0] and self.height <= PAGE[1]

    def place(self, index: int) -> tuple[float, float, float]:
        """Returns the x and y at which a heat map's cells begin, and the room left of them."""
        row, column = divmod(index, len(self.widths))
        x = sum(self.lefts[: column + 1]) + sum(self.widths[:column]) + GAP * (column + 1)
        y = sum(self.tops[: row + 1]) + sum(self.heights[:row]) + GAP * (row + 1)
        return x, y, self.lefts[column]


def _arrange(maps: Sequence[HeatMap], columns: int, cell: float) -> _Layout:
    """Lays out a grid of heat maps with cells of the given size."""
    columns = min(columns, len(maps))
    extents = [_extent(one, cell) for one in maps]
    by_column = [extents[column::columns] for column in range(columns)]
    by_row = [extents[start : start + columns] for start in range(0, len(maps), columns)]
    return _Layout(
        extents,
        # The most room that any member needs, so that cells line up in columns and in rows.
        lefts=[max(extent.left for extent in column) for column in by_column],
        widths=[max(extent.right for extent in column) for column in by_column],
        tops=[max(extent.top for extent in row) for row in by_row],
        heights=[max(extent.cells_height for extent in row) for row in by_row],
    )


def _cell(maps: Sequence[HeatMap], columns: int) -> float:
    """Returns the largest size of cells with which the maps fit a page, or the smallest allowed."""
    for cell in np.linspace(CELL, SMALLEST_CELL, 9):
        if _arrange(maps, columns, float(cell)).fits:
            return float(cell)
    return SMALLEST_CELL


def _extent(one: HeatMap, cell: float) -> _Extent:
    """Estimates the size of a heat map."""
    source, target = _labels(one.source), _labels(one.target)
    axes_names = text_width([_ACROSS, _DOWN], AXIS_SIZE)
    left = max(text_width(target, LABEL_SIZE), axes_names) + 0.1
    cells_width = max(len(source), 1) * cell
    title = text_width([_title(one, left + cells_width)], TITLE_SIZE) if one.title else 0.0
    return _Extent(
        cell=cell,
        cells_width=cells_width,
        cells_height=max(len(target), 1) * cell,
        left=left,
        top=_labels_height(source, cell) + (TITLE_ROOM if one.title else 0.0),
        right=max(cells_width, title - left),  # a title begins above the labels at the left
    )


def _title(one: HeatMap, width: float) -> str:
    """Returns the title, cut off at the picture's width: usually the labels repeat its words."""
    title = printable(one.title)
    width = max(width, SHORTEST_TITLE)
    if text_width([title], TITLE_SIZE) <= width:
        return title
    # The width grows with the number of characters kept, so the longest fit can be bisected.
    too_long = bisect.bisect_right(
        range(len(title)), width, key=lambda kept: text_width([title[:kept] + "…"], TITLE_SIZE)
    )
    return title[: max(too_long - 1, 0)].rstrip() + "…"


def _add_axes(figure: Figure, x: float, y: float, width: float, height: float) -> Axes:
    """Adds axes whose upper left corner is at (x, y) inches from the figure's."""
    across, down = figure.get_size_inches()
    # Matplotlib counts in fractions of the figure, from the bottom.
    return figure.add_axes((x / across, 1 - (y + height) / down, width / across, height / down))


def _draw(axes: Axes, one: HeatMap, cell: float, left: float) -> None:
    """Draws a heat map with its labels and title; `left` is the room left of its cells."""
    rows, columns = len(one.target), len(one.source)
    axes.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(rows + 1) - 0.5,
        np.clip(np.asarray(one.weights, np.float64), 0, 1),
        cmap=ATTENTION_MAP,
        norm=_UNIT,
        edgecolors="#EFEFEF",
        linewidth=0.4,
    )
    # At least one cell wide and high, for a range of zero would warn; the first row is at the top.
    axes.set_xlim(-0.5, max(columns, 1) - 0.5)
    axes.set_ylim(max(rows, 1) - 0.5, -0.5)
    axes.xaxis.tick_top()
    source = _labels(one.source)
    axes.set_xticks(np.arange(columns), source, **text_style(LABEL_SIZE))
    axes.set_yticks(np.arange(rows), _labels(one.target), **text_style(LABEL_SIZE))
    for text, turn in zip(axes.get_xticklabels(), _turned(source, cell), strict=True):
        text.set(rotation=90 if turn else 0, va="bottom", ha="center")
    axes.tick_params(length=0, pad=3)
    _name_axes(axes)
    for spine in axes.spines.values():
        spine.set(color=OUTLINE, linewidth=0.6)
    if one.title:
        axes.annotate(
            _title(one, left + max(columns, 1) * cell),
            xy=(0, 1),
            # From inches to points, beginning where the labels of the rows do.
            xytext=(72 * (0.1 - left), 72 * (_labels_height(source, cell) + TITLE_ROOM / 2)),
            xycoords="axes fraction",
            textcoords="offset points",
            va="center",
            **text_style(TITLE_SIZE, fontweight="bold"),
        )


def _name_axes(axes: Axes) -> None:
    """Names both axes in the corner between their labels."""
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
    bar = axes.figure.colorbar(ScalarMappable(_UNIT, ATTENTION_MAP), cax=axes)
    bar.outline.set(edgecolor=OUTLINE, linewidth=0.6)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.tick_params(length=2, labelsize=7.5, color=OUTLINE, labelcolor=INK, pad=2)
    axes.set_title("weight", loc="left", pad=8, **text_style(7.5))


def _turned(labels: Sequence[str], cell: float) -> list[bool]:
    """Says which column labels are turned upright: those wider than a cell, or all if many are."""
    wide = [text_width([label], LABEL_SIZE) > cell for label in labels]
    return [True] * len(labels) if sum(wide) > len(labels) / 4 else wide


def _labels_height(labels: Sequence[str], cell: float) -> float:
    """Estimates the room above the cells that the labels of columns need."""
    turned = [label for label, turn in zip(labels, _turned(labels, cell), strict=True) if turn]
    return max(text_width(turned, LABEL_SIZE), 2 * AXIS_SIZE / 72) + 0.08


def _labels(tokens: Sequence[str]) -> list[str]:
    return [printable(token) for token in tokens]
