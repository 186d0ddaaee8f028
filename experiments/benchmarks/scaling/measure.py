"""Scaling measurements: times a training step over sizes and devices; see `USAGE`."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import flags

from attention_jax.commands import cli
from attention_jax.errors import RunDirectoryError, UserError
from attention_jax.paths import expanded
from attention_jax.runs.provenance import command_line, commit, is_of_this_code, now
from experiments.benchmarks.scaling import page
from experiments.benchmarks.scaling.series import CPU, GPU, TPU, Series, SeriesPoint, all_series
from experiments.benchmarks.speed import report
from experiments.benchmarks.speed.benchmark import command_without_paths
from experiments.benchmarks.speed.harness import Conditions, Measurement, measure, summary
from experiments.kit.machine import hardware

USAGE = """
Measures the time of a training step and tokens in a second over batch size, length, depth, length
of the source alone (with global and local attention) and number of devices, each number in a
process of its own. On a GPU or TPU also model-FLOP utilisation, peak memory, and bfloat16 against
float32. A CPU is divided into simulated devices, which share its cores: they show what dividing
costs, not what more hardware brings. Results of other processors are kept beside those of this one.
About a quarter of an hour on two idle cores.

usage: python -m experiments.benchmarks.scaling.measure [--OPTION=VALUE ...]

  --platform=NAME     cpu, gpu or tpu; what JAX finds if not given
  --only=NAME,NAME    these series only: batch, length, hidden, attention, strong, weak
  --again             measure again what was already measured with the same code on this processor
  --rounds=N          how often each number is measured (5)
  --peak_tflops=X     peak of a device with bfloat16, for utilisation, where it is not known; kept
                      with the results, also with those that were measured before
  --out=DIRECTORY     results as JSON, Markdown and PNG (docs/results/scaling; with --smoke
                      runs/smoke_results/scaling)
  --workdir=DIRECTORY what the processes have to say (runs/scaling)
  --smoke             tiny sizes, to see that it works

for example:
  python -m experiments.benchmarks.scaling.measure --platform=cpu
  python -m experiments.benchmarks.scaling.measure --smoke --out=runs/scaling_trial
"""
_PROBE = """
import json, jax
print(json.dumps([jax.default_backend(), jax.device_count(), jax.devices()[0].device_kind]))
"""


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_enum("platform", None, [CPU, GPU, TPU], "Where to measure.")
    flags.DEFINE_list("only", [], "Names of the series to measure; all if empty.")
    flags.DEFINE_bool("again", False, "Measure again what was measured.")
    flags.DEFINE_integer("rounds", 5, "How often each number is measured.", lower_bound=1)
    flags.DEFINE_float("peak_tflops", 0.0, "Peak of a device.", lower_bound=0.0)
    flags.DEFINE_string("out", None, "Where results are written.")
    flags.DEFINE_string("workdir", "runs/scaling", "Where logs are kept.")
    flags.DEFINE_bool("smoke", False, "Whether everything is tiny.")
    return argv


def main() -> None:
    """Measures what is not measured yet, and writes after every series, also a known one."""
    platform, devices, kind = find_platform(cli.value("platform"))
    here = {**hardware(), **({} if platform == CPU else {platform: kind})}
    series = chosen(all_series(platform, devices, smoke=cli.value("smoke")), cli.value("only"))
    path = out_folder() / f"{platform}.json"
    results = load_series(path)
    conditions = Conditions(
        rounds=cli.value("rounds"), min_seconds=0.0 if cli.value("smoke") else 0.5,
        patience=0.0 if cli.value("smoke") else 20.0,
    )  # fmt: skip
    for each in series:
        known = results.get(each.name, [])
        found = report.of_machine(known, here)
        if is_current(found, each, here) and not cli.value("again"):
            print(f"{each.name}: measured already; --again measures again")
        else:
            print(f"{each.name}: {each.title}", flush=True)
            workdir = expanded(cli.value("workdir")).absolute()
            found = run(each, platform, here, conditions, workdir)
        if cli.value("peak_tflops"):
            found = {**found, "peak_flops": 1e12 * cli.value("peak_tflops")}
        results[each.name] = report.appended(known, found)
        report.write(path, results, page.page(platform, results))
        page.draw(platform, results, path.with_suffix(".png"))
    print(f"Written: {path}, {path.with_suffix('.md')} and {path.with_suffix('.png')}")


def out_folder() -> Path:
    """Returns where results are written; what is tiny never replaces what was measured."""
    usual = "runs/smoke_results/scaling" if cli.value("smoke") else "docs/results/scaling"
    return expanded(cli.value("out") or usual)


def load_series(path: Path) -> dict[str, list[Mapping[str, Any]]]:
    """Returns the results so far by series, one for each processor; raises as `report.load`."""
    found = report.load(path)
    is_by_series = isinstance(found, Mapping)
    if not is_by_series or not all(isinstance(each, list | Mapping) for each in found.values()):
        raise RunDirectoryError(f"{path}: expected results by series, found something else")
    return {name: report.several(each) for name, each in found.items()}


def find_platform(asked: str | None) -> tuple[str, int, str]:
    """Asks JAX, in another process, for the platform, its number of devices and their kind.

    A process that asked for itself would keep hold of the devices.

    Raises:
      UserError: If the platform asked for is not there.
    """
    names = {CPU: "cpu", GPU: "cuda", TPU: "tpu"}
    environment = {**os.environ, **({"JAX_PLATFORMS": names[asked]} if asked else {})}
    done = subprocess.run(
        [sys.executable, "-c", _PROBE], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        # Where it sees no GPU, JAX fails by an assertion that says nothing.
        reason = last if ":" in last else "none"
        raise UserError(f"--platform: expected {asked or 'one'} that JAX can use, found {reason}")
    found, count, kind = json.loads(done.stdout)
    return found, count, kind


def chosen(series: Sequence[Series], names: Sequence[str]) -> list[Series]:
    """Returns the series of those names, all if there are none.

    Raises:
      UserError: If there is no such series.
    """
    known = [each.name for each in series]
    for name in names:
        if name not in known:
            raise UserError(f"--only: expected some of {', '.join(known)}, found {name!r}")
    return [each for each in series if not names or each.name in names]


def is_current(
    result: Mapping[str, Any] | None, series: Series, here: Mapping[str, Any]
) -> bool:
    """Whether a series was measured completely, with this code and on the hardware `here`."""
    return (
        result is not None
        and not result["failures"]
        and result["description"] == series.describe()
        and is_of_this_code(result["commit"])
        and result["hardware"] == here
    )


def run(
    series: Series, platform: str, here: Mapping[str, Any], conditions: Conditions, workdir: Path
) -> dict[str, Any]:
    """Measures a series on the hardware `here`.

    Returns:
      The result as JSON can hold it, with all to judge it by.

    Raises:
      UserError: If not a single number could be measured.
    """
    load = os.getloadavg()
    points, failures = [], {}
    for group in series.groups(platform):
        measured, failed = measure(
            [point.contender(platform) for point in group], conditions,
            directory=workdir / platform / series.name, log=lambda line: print(line, flush=True),
        )  # fmt: skip
        points += [result(point, measured[point.name]) for point in group if point.name in measured]
        failures |= failed
    if not points:
        raise UserError(f"{series.name}: not measured: {next(iter(failures.values()))}")
    return {
        "title": series.title,
        "axis": series.axis,
        "description": series.describe(),
        "conditions": {"rounds": conditions.rounds, "min_seconds": conditions.min_seconds},
        "command": command_without_paths(command_line()),
        "commit": commit(),
        "time": now(),
        "hardware": dict(here),
        "load_average": {"before": load, "after": os.getloadavg()},
        "points": points,
        "failures": failures,
    }


def result(point: SeriesPoint, measured: Measurement) -> dict[str, Any]:
    """Returns the record of one number."""
    ready = measured.ready
    return {
        "line": point.line,
        "x": point.x,
        "devices": point.devices,
        "milliseconds": summary([1e3 * seconds for seconds in measured.seconds]),
        "tokens_per_second": summary(measured.rates("target tokens")),
        "flops": ready["flops"],
        "memory": ready["memory"],
        "peak_rss_mib": measured.peak_rss_mib,
        "other_load": summary(measured.other_load),
        "device": ready["device"],
        "version": ready["version"],
        "seconds": measured.seconds,
    }


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
