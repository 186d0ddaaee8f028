"""The figure of the measurements: a panel for each series."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.plotting.figure import COLOURS, new_figure, save_figure, text_style, tidy
from experiments.benchmarks.scaling import analysis
from experiments.benchmarks.scaling.series import CPU

_RATES = ("batch", "length", "hidden")


def draw(platform: str, results: Mapping[str, Any], path: Path) -> None:
    """Draws speed over sizes, and the time of a step over source lengths and devices."""
    columns = min(3, len(results))
    rows = -(-len(results) // columns)
    figure = new_figure(3.4 * columns, 2.7 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (name, result) in zip(panels, results.items(), strict=False):
        _panel(axes, name, result, platform)
    for axes in panels[len(results) :]:
        axes.set_visible(False)
    figure.tight_layout()
    save_figure(figure, path)


def _panel(axes: Any, name: str, result: Mapping[str, Any], platform: str) -> None:
    lines = analysis.seconds_by_line(result)
    rates = name in _RATES
    for colour, (line, seconds) in zip(COLOURS, lines.items(), strict=False):
        xs = list(seconds)
        ys = [1e3 * value for value in seconds.values()]
        if rates:
            ys = [point["tokens_per_second"]["median"] for point in result["points"]
                  if point["line"] == line]  # fmt: skip
        axes.plot(xs, ys, "o", color=colour, markersize=4, label=line,
                  linestyle="none" if name == "attention" else "-")  # fmt: skip
    if name == "attention":
        fits = analysis.growth_by_line(result)
        for colour, (line, (slope, intercept)) in zip(COLOURS, fits.items(), strict=False):
            xs = np.array([min(lines[line]), max(lines[line])])
            axes.plot(xs, intercept + slope * xs, color=colour, linewidth=1)
    if name in ("strong", "weak") and platform == CPU and 1 in (only := next(iter(lines.values()))):
        ideal = [1e3 * only[1] * (count if name == "weak" else 1) for count in only]
        axes.plot(list(only), ideal, color="#8C8C8C", linestyle="--", linewidth=1,
                  label="no overhead")  # fmt: skip
    tidy(axes)
    axes.margins(y=0.1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(result["axis"], **text_style(8))
    axes.set_ylabel("target tokens/s" if rates else "ms a step", **text_style(8))
    axes.set_title(result["title"], loc="left", **text_style(9, fontweight="bold"))
    if len(axes.get_lines()) > 1:
        axes.legend(frameon=False, fontsize=7)
