"""The Markdown page of the measurements."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from attention_jax.runs.provenance import short_commit
from experiments.benchmarks.scaling import analysis
from experiments.benchmarks.scaling.series import CPU
from experiments.kit import templates

_TITLES = {CPU: "a CPU", "gpu": "GPUs", "tpu": "TPUs"}
_IDLE = 0.2  # cores that others may use on a machine that is called idle
_DEVICES = {"strong": False, "weak": True}  # whether the batch grows with the devices


def page(platform: str, results: Mapping[str, Any]) -> str:
    """Returns the page.

    Args:
      platform: Where it was measured.
      results: By the names of the series. Utilisation is measured by a result's `peak_flops`
        (1/s), or by what is known of the device.
    """
    series = []
    for name, result in results.items():
        series += [f"## {result['title']}", "", *_table(name, result, platform), ""]
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
    """Returns what the fitted lines say, for the mechanisms."""
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
