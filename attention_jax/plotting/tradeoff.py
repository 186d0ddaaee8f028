"""Scatter plot of two scores of several systems, with their spread over seeds."""

import dataclasses
from collections.abc import Mapping

from matplotlib.figure import Figure

from attention_jax.plotting.figure import (
    COLOURS,
    legend_columns,
    new_figure,
    printable,
    text_style,
    tidy,
)
from attention_jax.plotting.labels import place_labels

MARKERS = "osD^vPX"


@dataclasses.dataclass(frozen=True)
class Point:
    """A system in the scatter plot: mean and standard deviation of both scores.

    Attributes:
      x: Mean of the first score.
      y: Mean of the second score.
      x_spread: Standard deviation of the first.
      y_spread: Standard deviation of the second.
      group: Systems of one group share colour, marker and an entry of the legend.
    """

    x: float
    y: float
    x_spread: float
    y_spread: float
    group: str


def tradeoff(points: Mapping[str, Point], x: str, y: str, title: str = "") -> Figure:
    """Scatter plot: draws systems as points with their names, and bars of one standard deviation.

    Args:
      points: The systems by name.
      x: Name of the first score, for the axis.
      y: Name of the second score.
      title: Title of the figure.

    Raises:
      ValueError: If there are no points.
    """
    if not points:
        raise ValueError("expected at least one system, found none")
    figure = new_figure(8.0, 5.6)
    figure.set_layout_engine("constrained", h_pad=0.08, w_pad=0.08)
    axes = figure.subplots()
    colours: dict[str, str] = {}
    groups = list(dict.fromkeys(point.group for point in points.values()))
    for index, group in enumerate(groups):
        members = {name: point for name, point in points.items() if point.group == group}
        colour = COLOURS[index % len(COLOURS)]
        axes.errorbar(
            [point.x for point in members.values()],
            [point.y for point in members.values()],
            xerr=[point.x_spread for point in members.values()],
            yerr=[point.y_spread for point in members.values()],
            fmt=MARKERS[index % len(MARKERS)], color=colour, markersize=5.5, elinewidth=0.8,
            markeredgecolor="white", markeredgewidth=0.6, label=group, alpha=0.9,
        )  # fmt: skip
        colours |= dict.fromkeys(members, colour)
    tidy(axes)
    axes.margins(x=0.12, y=0.08)
    axes.set_xlabel(x, **text_style(8.5))
    axes.set_ylabel(y, **text_style(8.5))
    legend = figure.legend(frameon=False, fontsize=8, loc="outside lower center",
                           ncols=legend_columns(figure, groups))  # fmt: skip
    for text in legend.get_texts():
        text.set(**text_style(8))
    if title:
        axes.set_title(printable(title), loc="left", **text_style(11, fontweight="bold"))
    # Last, for labels are placed in pixels, which any change of layout would move.
    place_labels(axes, {name: (point.x, point.y) for name, point in points.items()}, colours)
    return figure
