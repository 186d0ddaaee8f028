"""Word aligners beside each other: AER, time and memory; see `USAGE`."""

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from absl import flags

from attention_jax.commands import cli
from attention_jax.paths import expanded
from attention_jax.plotting.figure import COLOURS, new_figure, text_style, tidy
from attention_jax.runs.provenance import commit, now, short_commit
from attention_jax.runs.run_directory import writing
from attention_jax.sweeps import tables
from experiments.benchmarks import aligner_worker
from experiments.benchmarks.aligner_worker import ALIGNERS, SYMMETRIZATIONS
from experiments.benchmarks.speed import report
from experiments.kit import machine, pictures, templates

USAGE = """
Aligns Hansards and Multi30k with every aligner, each in a process of its own, and writes AER, time
and memory beside each other (aligners.json, .md, .png). Results of other processors stay beside
those of this one. Aligners and corpora that are not there are left out, and the page says why.
Needs ATTENTION_JAX_DATA with hansards_aer and multi30k, eflomal (pip install '.[align]') and
fast_align on the PATH to compare with; five minutes.

usage: python -m experiments.benchmarks.aligners [--rounds=N] [--out=DIRECTORY]

  --rounds   measurements of each aligner, of which the medians are shown (3)
  --out      where the results are written (docs/results)
"""
COMMAND = "python -m experiments.benchmarks.aligners"
TITLES = {
    "hansards": "Hansards, English-French",
    "multi30k_1k": "Multi30k, English-German, test pairs alone",
    "multi30k_30k": "Multi30k, English-German, test and training pairs",
}
REFERENCE = "eflomal"
_RATES = ("forward", "reverse", *SYMMETRIZATIONS)
_COSTS = {"seconds": 1, "cpu_seconds": 1, "peak_mib": 0}  # with digits to be shown
_REASON_LENGTH = 200


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_integer("rounds", 3, "Measurements of each aligner.", lower_bound=1)
    flags.DEFINE_string("out", "docs/results", "Where results are written.")
    return argv


def main() -> None:
    """Measures, prints and writes JSON, a page and a plot."""
    path = expanded(cli.value("out")) / "aligners.json"
    with writing(path):  # before minutes of measuring, whose numbers would be lost
        path.parent.mkdir(parents=True, exist_ok=True)
    results = measure(cli.value("rounds"))
    first, *_ = report.write_beside(path, page, results)  # of the picture, too
    with writing(path.with_suffix(".png")):
        pictures.save(plot(first), path.with_suffix(".png"))
    print(page(results))


def measure(rounds: int) -> dict[str, Any]:
    """Returns what every aligner costs and how often it errs on every corpus."""
    found: dict[str, dict[str, Any]] = {}
    for corpus in aligner_worker.CORPORA:
        measured: dict[str, list] = {name: [] for name in ALIGNERS}
        # Rounds of all aligners, so that a slow minute of the machine is not that of one of them.
        for _ in range(rounds):
            for name in ALIGNERS:
                if not any("reason" in each for each in measured[name]):
                    measured[name].append(_in_a_process(corpus, name))
                    print(corpus, name, measured[name][-1], flush=True)
        found[corpus] = {name: _joined(each) for name, each in measured.items()}
    return {
        "command": COMMAND,
        "commit": commit(),
        "time": now(),
        "hardware": machine.hardware(),
        "rounds": rounds,
        "corpora": found,
    }


def _in_a_process(corpus: str, aligner: str) -> dict[str, Any]:
    """Returns the worker's measurement, or the `reason` why there is none."""
    command = [sys.executable, "-m", aligner_worker.__name__, corpus, aligner]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return {"reason": last[:_REASON_LENGTH]}
    return json.loads(done.stdout.splitlines()[-1])


def _joined(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns medians over rounds, and every round's values; a reason in place of both."""
    if "reason" in rounds[-1]:
        return rounds[-1]
    return {
        "median": {name: statistics.median(each[name] for each in rounds) for name in rounds[0]},
        "rounds": rounds,
    }


def page(results: Mapping[str, Any]) -> str:
    """Returns the results as Markdown."""
    sections = [
        templates.titled(TITLES[corpus], _table(measured))
        for corpus, measured in results["corpora"].items()
    ]
    text = templates.fill(
        "aligners", corpora="\n\n".join(sections), rounds=results["rounds"],
        command=results["command"], commit=short_commit(results["commit"]), time=results["time"],
        machine=machine.named(results["hardware"]),
    )  # fmt: skip
    return text + "\n"


def _table(measured: Mapping[str, Any]) -> str:
    medians = {name: each["median"] for name, each in measured.items() if "median" in each}
    skipped = {name: each["reason"] for name, each in measured.items() if "reason" in each}
    reference = medians.get(REFERENCE)
    rows = []
    for name, values in medians.items():
        ratio = tables.NOTHING
        if reference is not None:
            ratio = f"{values['cpu_seconds'] / reference['cpu_seconds']:.2f}"
        rates = [f"{values[rate]:.2f}" for rate in _RATES]
        costs = [f"{values[cost]:.{digits}f}" for cost, digits in _COSTS.items()]
        rows.append([name, *rates, *costs, ratio])
    headings = ["aligner", *_RATES, "s", "CPU s", "MiB", f"CPU s, {REFERENCE} = 1"]
    parts = [tables.table(headings, rows)] if rows else []
    if medians:
        first = next(iter(medians.values()))
        parts.insert(0, f"{first['pairs']:.0f} pairs, {first['gold_pairs']:.0f} with gold links.")
    parts += [f"Not measured: {name} ({reason})." for name, reason in skipped.items()]
    return "\n\n".join(parts)


def plot(results: Mapping[str, Any]) -> Any:
    """Draws AER over seconds of computing, a panel for each corpus."""
    corpora = results["corpora"]
    figure = new_figure(3.6 * len(corpora), 3.4)
    for axes, (corpus, measured) in zip(
        figure.subplots(1, len(corpora), squeeze=False)[0], corpora.items(), strict=True
    ):
        for colour, (name, each) in zip(COLOURS, measured.items(), strict=False):
            if "median" in each:
                seconds, rate = each["median"]["cpu_seconds"], each["median"][SYMMETRIZATIONS[-1]]
                axes.plot([seconds], [rate], color=colour, marker="o", linestyle="", label=name)
        tidy(axes)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        if axes.lines:  # else there is nothing to be named, of which Matplotlib warns
            axes.legend(frameon=False, fontsize=8)
        axes.set_xlabel("CPU seconds", **text_style(9))
        axes.set_ylabel(f"AER, {SYMMETRIZATIONS[-1]}", **text_style(9))
        axes.set_title(TITLES[corpus].replace("English-German, ", ""), loc="left",
                       **text_style(9, fontweight="bold"))  # fmt: skip
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
