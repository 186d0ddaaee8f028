"""Learning curves of several systems: one metric over training, in groups side by side."""

import functools
import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from attention_jax.plotting.curves import Curve
from attention_jax.plotting.figure import COLOURS, OUTLINE, new_figure, printable, text_style, tidy

_STYLES = ("-", "--", ":")


def system_curves(
    panels: Mapping[str, Mapping[str, Curve]],
    label: str,
    title: str = "",
    progress: str = "updates",
) -> Figure:
    """Learning curves: draws each group of systems in a panel of its own, on one logarithmic axis.

    A system that is in every panel, as the one to compare with, is drawn grey.

    Args:
      panels: The curves (steps, values) by group and by the name of the system.
      label: Name of the values, for the axis.
      title: Title of the figure.
      progress: Name of the steps, for the axis.

    Raises:
      ValueError: If there are no panels.
    """
    if not panels:
        raise ValueError("expected at least one group of systems, found none")
    figure = new_figure(3.4 * len(panels) + 0.6, 5.6)
    figure.set_layout_engine("constrained", h_pad=0.06, w_pad=0.06)
    row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    shared = set.intersection(*(set(systems) for systems in panels.values()))
    shared = shared if len(panels) > 1 else set()  # all are in a single panel
    for axes, (group, systems) in zip(row, panels.items(), strict=True):
        # All colours of solid lines come first, then those of dashed ones.
        looks = itertools.cycle(itertools.product(_STYLES, COLOURS))
        for name, (steps, values) in systems.items():
            style, colour = ("-", OUTLINE) if name in shared else next(looks)
            axes.plot(steps, values, style, color=colour, linewidth=1.5, marker="o",
                      markersize=2.5, label=name)  # fmt: skip
        axes.set_yscale("log")
        # Most curves span less than a decade: with ticks at powers of ten alone, none may be seen.
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5)))
        axes.yaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
        tidy(axes)
        axes.set_title(group, loc="left", **text_style(9))
        axes.set_xlabel(progress, **text_style(8.5))
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.12), frameon=False, fontsize=7)
    row[0].set_ylabel(label, **text_style(8.5))
    if title:
        figure.suptitle(printable(title), x=0.02, ha="left", **text_style(11, fontweight="bold"))
    return figure


def averaged_curve(curves: Sequence[Curve]) -> Curve:
    """Averages curves at the steps that all of them have."""
    steps = functools.reduce(np.intersect1d, [each for each, _ in curves])
    return steps, np.mean([values[np.isin(each, steps)] for each, values in curves], axis=0)
