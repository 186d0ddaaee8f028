"""Measures how long starting takes beside PyTorch and JoeyNMT; see `USAGE`."""

import dataclasses
import functools
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from attention_jax.sweeps import tables
from experiments.benchmarks.speed import program, report
from experiments.benchmarks.speed.benchmark import (
    JOEYNMT,
    PROJECT,
    TORCH,
    Setting,
    Side,
    Workload,
    result_of,
)
from experiments.benchmarks.speed.harness import Conditions
from experiments.benchmarks.speed.starts import measure_starts
from experiments.benchmarks.speed.startup_plans import EMPTY, FILLED, plan_of
from experiments.benchmarks.speed.workloads import Sentences, Sizes, TransformerSizes

USAGE = """
Measures the wall time of whole processes, from their spawning: a training of the models of the
speed comparison, on a made-up text of words, to the end of its third step, with an empty and with a
filled compilation cache, beside the same in PyTorch and JoeyNMT; one sentence translated by a
trained run, with byte-code and without; and a first training on Multi30k until the update is
compiled for all of its batch shapes. They take turns, in shuffled rounds. About half an hour.

  python -m experiments.benchmarks.speed.startup [--OPTION=VALUE ...]

Workloads: rnn and transformer (to the third step), translate, and first_rnn and first_transformer
(which want the files of Multi30k, in ATTENTION_JAX_DATA if they are not to be fetched).
"""
LENGTH, LINES, BATCH, WIDTH = 24, 2000, 64, 5  # words of a line, to which EOS comes
_PACKAGES = {PROJECT: "jax", TORCH: "torch", JOEYNMT: "joeynmt"}
_THRICE, _ONCE = Conditions(rounds=3, run_limit=300.0), Conditions(rounds=1, run_limit=1800.0)
_MODELS = {"rnn": ("recurrent model", Sizes()), "transformer": ("Transformer", TransformerSizes())}
_FIRST = {"rnn": "bahdanau2015", "transformer": "vaswani2017"}


def make_workloads(setting: Setting) -> list[Workload]:
    """Makes up the text and returns what is measured."""
    text = setting.workdir / "inputs" / "startup"
    text.parent.mkdir(parents=True, exist_ok=True)
    sentences = Sentences.random(LINES, LENGTH + 1, LENGTH + 1, Sizes().vocabulary)
    for side in ("source", "target"):
        rows = getattr(sentences, side)
        lines = (" ".join(f"w{number}" for number in row[:-1]) for row in rows)
        text.with_suffix(f".{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [
        *(trainings(name, str(text)) for name in _MODELS),
        translating(str(text)),
        *(first_run(name) for name in _FIRST),
    ]


def trainings(name: str, text: str) -> Workload:
    """A training to the end of its third step."""
    title, sizes = _MODELS[name]
    common = {
        "kind": "train", "model": name, "text": text, "batch": BATCH,
        "sizes": dataclasses.asdict(sizes),
    }  # fmt: skip
    filled, empty = {**common, "cache": FILLED}, {**common, "cache": EMPTY}
    return Workload(
        name=name,
        title=f"From spawning to the third step, {title}, {BATCH} sentences of {LENGTH + 1} tokens",
        unit="starts",
        sides=[
            Side("attention_jax, filled cache", PROJECT, filled),
            Side("attention_jax, empty cache", PROJECT, empty),
            Side("PyTorch", TORCH, {**filled, "compiled": False}),
            Side("torch.compile, filled cache", TORCH, {**filled, "compiled": True}),
            Side("torch.compile, empty cache", TORCH, {**empty, "compiled": True}),
            *([Side("JoeyNMT", JOEYNMT, filled)] if name == "rnn" else []),
        ],
        conditions=_THRICE,
    )


def translating(text: str) -> Workload:
    """One sentence, by a process that ends with it."""
    task = {
        "kind": "translate", "model": "rnn", "text": text, "batch": BATCH, "width": WIDTH,
        "longest": LENGTH + 1, "sizes": dataclasses.asdict(Sizes()), "cache": FILLED,
    }  # fmt: skip
    return Workload(
        name="translate",
        title=f"One sentence of {LENGTH} words translated by the command, {WIDTH} beams",
        unit="starts",
        sides=[
            Side("attention_jax", PROJECT, {**task, "bytecode": FILLED}),
            Side("attention_jax, no byte-code", PROJECT, {**task, "bytecode": EMPTY}),
            Side("JoeyNMT", JOEYNMT, {**task, "bytecode": FILLED}),
        ],
        conditions=_THRICE,
    )


def first_run(name: str) -> Workload:
    """A first training on Multi30k, until nothing is left to compile."""
    title, _ = _MODELS[name]
    task = {"kind": "first", "config": f"configs/{_FIRST[name]}.py:multi30k", "cache": EMPTY}
    return Workload(
        name=f"first_{name}",
        title=f"A first training on Multi30k, {title}, until all batch shapes are compiled",
        unit="starts",
        sides=[Side("attention_jax", PROJECT, task)],
        conditions=_ONCE,
    )


def run_starts(
    workload: Workload, setting: Setting, log: Callable[[str], None] = print
) -> dict[str, Any]:
    """Measures a workload as `benchmark.run_workload` does, whose errors it has."""
    log(f"{workload.name}: {workload.title}")
    plans, missing = {}, {}
    for side in workload.sides:
        version = version_of(side.framework, setting.interpreters[side.framework])
        if version is None:
            missing[side.name] = f"no package {_PACKAGES[side.framework]} is installed"
        else:
            ready = {"version": f"{_PACKAGES[side.framework]} {version}"}
            # torch.compile hands its cache's path to the C++ compiler as it is: no spaces.
            folder = re.sub(r"\W+", "_", side.name)
            kept = setting.workdir / "startup" / workload.name / folder
            plans[side.name] = dataclasses.replace(plan_of(side, setting, kept), ready=ready)
    measured, failures = measure_starts(plans, workload.conditions, setting.environment(), log)
    return result_of(workload, setting, measured, {**missing, **failures})


def version_of(framework: str, python: str) -> str | None:
    """Returns the version of a framework's package, or None if its Python has none."""
    package = _PACKAGES[framework]
    if python == sys.executable:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return None
    ask = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    asked = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    return asked.stdout.strip() or None


def table(result: Mapping[str, Any]) -> str:
    """Returns the table of a workload: seconds, with their range, and ratios."""
    contenders = result["contenders"]
    first, *others = contenders
    is_first_run = any("shapes" in each for each in contenders.values())
    headings = ["contender", "s"]
    headings += ["waiting for compilers, s", "batch shapes", "steps"] if is_first_run else []
    headings += [f"{first} against it"] if others or result["failures"] else []
    headings += ["peak memory MiB", "other load"]
    rows = []
    for name, each in contenders.items():
        thousandths = each["milliseconds"]
        row = [name, report.with_range({key: thousandths[key] / 1e3 for key in thousandths})]
        if is_first_run:
            row += [f"{each['waited_seconds']:.1f}", str(each["shapes"]), str(each["steps"])]
        if others or result["failures"]:
            row.append("1" if name == first else report.with_range(each["first_against_it"]))
        rows.append([*row, f"{each['peak_rss_mib']:.0f}", f"{each['other_load']:.2f}"])
    for name, reason in result["failures"].items():
        rows.append([name, f"not measured: {reason}", *[""] * (len(headings) - 2)])
    return tables.table(headings, rows)


page = functools.partial(report.page, "Start-up times", template="startup", table_of=table)


if __name__ == "__main__":
    # As users start programs: memory is as the system has it.
    options = {"keeps_memory": False, "measure": run_starts, "table": table}
    program.run("startup", USAGE, make_workloads, page, **options)
