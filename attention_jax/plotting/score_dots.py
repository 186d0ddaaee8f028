"""Dot plot of scores: many systems under one another, with their spread over seeds."""

from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.figure import Figure

from attention_jax.plotting.figure import (
    COLOURS,
    OUTLINE,
    legend_columns,
    new_figure,
    printable,
    text_style,
    tidy,
)

_MARKERS = "osD^v"
_SHIFT = 0.16  # between the dots of one line


class Score(NamedTuple):
    """Mean and standard deviation of a system's score over seeds."""

    mean: float
    spread: float


Series = Mapping[str, Mapping[str, Score]]


def score_dots(panels: Mapping[str, Series], title: str = "", reference: str = "") -> Figure:
    """Dot plot: draws each score in a panel of its own, with one row of dots for each system.

    Dots have bars of one standard deviation; several series have a legend.

    Args:
      panels: For each score its series, such as with and without a treatment, and in each of them
        the systems by name. A name need not be in every series, nor in every panel.
      title: Title of the figure.
      reference: Name of a system: where the first series has it, a dotted line marks its score.

    Raises:
      ValueError: If there is nothing to draw.
    """
    names = list(
        dict.fromkeys(
            name for series in panels.values() for of_one in series.values() for name in of_one
        )
    )
    if not names:
        raise ValueError("expected at least one system, found none")
    labels = list(dict.fromkeys(label for series in panels.values() for label in series))
    figure = new_figure(2.6 * len(panels) + 1.8, 0.24 * len(names) + 1.3)
    figure.set_layout_engine("constrained", h_pad=0.06, w_pad=0.06)
    row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (measure, series) in zip(row, panels.items(), strict=True):
        for label, systems in series.items():
            index = labels.index(label)
            shift = (index - (len(labels) - 1) / 2) * _SHIFT  # series lie around the middle
            axes.errorbar(
                [score.mean for score in systems.values()],
                [names.index(name) + shift for name in systems],
                xerr=[score.spread for score in systems.values()],
                fmt=_MARKERS[index % len(_MARKERS)], color=COLOURS[index % len(COLOURS)],
                markersize=5, markeredgecolor="white", markeredgewidth=0.5, elinewidth=0.9,
                label=label,
            )  # fmt: skip
            if index == 0 and reference in systems:
                axes.axvline(systems[reference].mean, color=OUTLINE, linewidth=0.8, linestyle=":")
        tidy(axes)
        axes.set_xlabel(measure, **text_style(8.5))
    row[0].set_yticks(range(len(names)), names, **text_style(8))
    row[0].set_ylim(len(names) - 0.5, -0.5)  # upside down: the first name is at the top
    if len(labels) > 1:
        # A series may be missing from some panels: the legend collects those of all, each once.
        shown = {
            label: handle
            for axes in row
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(shown.values(), shown.keys(), loc="outside lower center", frameon=False,
                      fontsize=8, ncols=legend_columns(figure, shown))  # fmt: skip
    if title:
        figure.suptitle(printable(title), x=0.02, ha="left", **text_style(11, fontweight="bold"))
    return figure
