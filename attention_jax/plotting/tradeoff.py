"""Two scores of several systems against one another, with their spread over seeds."""

import dataclasses
from collections.abc import Mapping

from matplotlib.figure import Figure

from attention_jax.plotting.figure import COLOURS, new_figure, text_style, tidy
from attention_jax.plotting.labels import place_labels

MARKERS = "osD^vPX"


@dataclasses.dataclass(frozen=True)
class Point:
    """A system.

    Attributes:
      x: Its mean in the first score.
      y: Its mean in the second one.
      x_spread: Standard deviation of the first.
      y_spread: Standard deviation of the second.
      group: Systems of a group share a colour.
    """

    x: float
    y: float
    x_spread: float
    y_spread: float
    group: str


def tradeoff(points: Mapping[str, Point], x: str, y: str, title: str = "") -> Figure:
    """Draws systems as points with their names beside them.

    Args:
      points: The systems by name.
      x: What the first score is called.
      y: What the second score is called.
      title: What stands above.

    Returns:
      A figure with bars of one standard deviation and a legend of the groups.

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
    legend = figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=len(groups))
    for text in legend.get_texts():
        text.set(**text_style(8))
    if title:
        axes.set_title(title, loc="left", **text_style(11, fontweight="bold"))
    place_labels(axes, {name: (point.x, point.y) for name, point in points.items()}, colours)
    return figure
