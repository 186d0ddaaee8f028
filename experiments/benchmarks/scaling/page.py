"""The page of the measurements as Markdown, and its figure: a panel for each series."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.plotting.figure import COLOURS, new_figure, text_style, tidy
from attention_jax.runs.provenance import short_commit
from experiments.benchmarks.scaling import analysis
from experiments.benchmarks.scaling.series import CPU
from experiments.kit import pictures, templates

_TITLES = {CPU: "a CPU", "gpu": "GPUs", "tpu": "TPUs"}
_IDLE = 0.2  # cores that others may use on a machine that is called idle
_RATES = ("batch", "length", "hidden")  # series whose panel shows speed, not time
_DEVICES = {"strong": False, "weak": True}  # whether the batch grows with the devices
Measured = Mapping[str, Sequence[Mapping[str, Any]]]  # one result a processor, by series


def page(platform: str, results: Measured) -> str:
    """Returns the page: a table for each series and processor, which is named below it.

    Args:
      platform: Where it was measured.
      results: One for each processor, by the names of the series. Utilisation is measured by a
        result's `peak_flops` (1/s), or by what is known of the device.
    """
    series = []
    for name, measured in results.items():
        series += [f"## {measured[0]['title']}", ""]
        for result in measured:
            series += [*_table(name, result, platform), ""]
            series += [*_reading(name, result), *_conditions(result), ""]
    simulated = f"\n{templates.fill('scaling_simulated')}" if platform == CPU else ""
    text = templates.fill(
        "scaling", hardware=_TITLES[platform], simulated=simulated, platform=platform,
        series=templates.section(series),
    )  # fmt: skip
    return text + "\n"


def _table(name: str, result: Mapping[str, Any], platform: str) -> list[str]:
    given = result.get("peak_flops", 0.0)
    peak_rate = analysis.peak_flops(result["points"][0]["device"], given)
    gains = _gains(name, result, platform)
    headings = ["", result["axis"], "ms a step", "target tokens/s", "GFLOP/s"]
    headings += ["of the bfloat16 peak"] if peak_rate else []
    headings += ["peak memory MiB", *([gains[0]] if gains else [])]
    rows = [headings, ["---"] + ["---:"] * (len(headings) - 1)]
    for point in result["points"]:
        seconds = point["milliseconds"]["median"] / 1e3
        row = [point["line"], str(point["x"]), _ranged(point["milliseconds"]),
               f"{point['tokens_per_second']['median']:,.0f}",
               f"{point['flops'] / seconds / 1e9:,.1f}"]  # fmt: skip
        if peak_rate:
            share = analysis.utilisation(point["flops"], seconds, point["devices"], peak_rate)
            row.append(f"{share:.1%}")
        row.append(f"{_peak_memory(point):,.0f}")
        row += [f"{gains[1][point['x']]:.0%}"] if gains else []
        rows.append(row)
    for failed, reason in result["failures"].items():
        rows.append([failed, f"not measured: {reason}"] + [""] * (len(headings) - 2))
    return [f"| {' | '.join(row)} |" for row in rows]


def _gains(
    name: str, result: Mapping[str, Any], platform: str
) -> tuple[str, dict[int, float]] | None:
    """Returns the heading and the values by number of devices, for series of devices."""
    if name not in _DEVICES:
        return None
    (seconds,) = analysis.seconds_by_line(result).values()
    if 1 not in seconds:
        return None
    if platform == CPU:
        return "overhead", analysis.partitioning_overhead(seconds, grows=_DEVICES[name])
    return "efficiency", analysis.efficiency(seconds, grows=_DEVICES[name])


def _reading(name: str, result: Mapping[str, Any]) -> list[str]:
    """Returns the fitted growth with source length, for the series of attention mechanisms."""
    if name != "attention":
        return []
    slopes = {line: 1e3 * slope for line, (slope, _) in analysis.growth_by_line(result).items()}
    words = ", ".join(f"{line} {slope:.0f}" for line, slope in slopes.items())
    text = f"Fitted growth of a step, µs for every further source token: {words}."
    if "none" in slopes:
        text += f" {templates.fill('scaling_growth')}"
    return [text, ""]


def _conditions(result: Mapping[str, Any]) -> list[str]:
    points, machine = result["points"], result["hardware"]
    others = [point["other_load"]["median"] for point in points]
    before, after = (result["load_average"][when][0] for when in ("before", "after"))
    shared = "The machine was idle otherwise"
    if max(others) > _IDLE:
        shared = "**The machine was shared**, so these numbers are rough"
    return [
        f"`{result['command']}` at {short_commit(result['commit'])}, {result['time']}; "
        f"{points[0]['version']}; {points[0]['device']}, {machine['cpu']}, {machine['cores']} "
        f"cores, {result['conditions']['rounds']} rounds. {shared}: while a number was measured, "
        f"other processes used {statistics.median(others):.1f} cores (at most {max(others):.1f}); "
        f"load average {before:.1f} before, {after:.1f} after."
    ]


def _peak_memory(point: Mapping[str, Any]) -> float:
    on_device: Sequence[str] = [name for name in point["memory"] if name == "memory/device_peak"]
    return point["memory"][on_device[0]] / 2**20 if on_device else point["peak_rss_mib"]


def _ranged(values: Mapping[str, float]) -> str:
    return f"{values['median']:,.1f} ({values['min']:,.1f}–{values['max']:,.1f})"


def draw(platform: str, results: Measured, path: Path) -> None:
    """Draws the first table of each series: speed over sizes, time over sources and devices."""
    columns = min(3, len(results))
    rows = -(-len(results) // columns)
    figure = new_figure(3.4 * columns, 2.7 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (name, measured) in zip(panels, results.items(), strict=False):
        _panel(axes, name, measured[0], platform)
    for axes in panels[len(results) :]:
        axes.set_visible(False)
    figure.tight_layout()
    pictures.save(figure, path)


def _panel(axes: Any, name: str, result: Mapping[str, Any], platform: str) -> None:
    lines = analysis.seconds_by_line(result)
    rates = name in _RATES
    for colour, (line, seconds) in zip(COLOURS, lines.items(), strict=False):
        xs = list(seconds)
        ys = [1e3 * value for value in seconds.values()]
        # Panels of sizes show tokens per second; the others show the time of a step.
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
