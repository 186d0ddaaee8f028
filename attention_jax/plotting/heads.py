"""Attention heads: a grid of layers and heads for each statistic of theirs."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from attention_jax.plotting.figure import INK, new_figure, text_style

_CELL = 0.55  # inches
_LABELS = 2.6  # inches, for the names of layers


def head_grid(measures: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Attention heads: draws a grid for each measure, with a row per layer and a column per head.

    The larger a value is among those of its measure, the darker is its cell.

    Args:
      measures: For each measure, the values of each layer's heads, which are numbered from 0.

    Raises:
      ValueError: If there is nothing to draw.
    """
    if not measures:
        raise ValueError("expected at least one measure, found none")
    rows = [len(layers) for layers in measures.values()]
    columns = max(len(values) for layers in measures.values() for values in layers.values())
    width = _LABELS + columns * _CELL + 0.4
    # Beside its rows, each grid needs room for a title above and the numbers of heads below.
    figure = new_figure(max(width, 5.0), sum(rows) * _CELL + 0.9 * len(rows))
    figure.set_layout_engine("constrained", h_pad=0.1, w_pad=0.1)
    grids = np.atleast_1d(figure.subplots(len(rows), 1, gridspec_kw={"height_ratios": rows}))
    for axes, (name, layers) in zip(grids, measures.items(), strict=True):
        # layers heads; nan, which stays white, where a layer has fewer heads than another
        table = np.full((len(layers), columns), np.nan)
        for row, values in enumerate(layers.values()):
            table[row, : len(values)] = values
        axes.imshow(table, cmap="Blues", aspect="auto", vmin=np.nanmin(table) - 1e-9)
        shown = _in_digits(np.nanmax(table) - np.nanmin(table))
        # Above the middle of the range a cell is dark, and its number is written in white.
        middle = (np.nanmin(table) + np.nanmax(table)) / 2
        for (row, column), value in np.ndenumerate(table):
            if not np.isnan(value):
                colour = "white" if value > middle else INK
                style = {**text_style(7), "color": colour}
                axes.text(column, row, shown(value), ha="center", va="center", **style)
        axes.set_title(name, loc="left", **text_style(10))
        axes.set_yticks(range(len(layers)), list(layers), **text_style(8))
        axes.set_xticks(range(columns), range(columns), **text_style(8))
        axes.tick_params(length=0)
    grids[-1].set_xlabel("head", **text_style(9))
    return figure


def _in_digits(span: float) -> Callable[[float], str]:
    """Returns a formatter with enough digits for values that differ by `span` to look different."""
    # Two significant digits of the span: 0.03 -> 3 digits, 3 -> 1, but from 2 to 4 in any case.
    digits = 2 if span <= 0 else int(np.clip(np.ceil(1 - np.log10(span)), 2, 4))
    return lambda value: f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0 makes -0.0 positive
