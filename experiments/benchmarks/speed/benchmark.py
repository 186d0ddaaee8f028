"""Benchmark of workloads: runs contenders, checks that they agree, skips what is measured."""

import dataclasses
import json
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.errors import UserError
from attention_jax.runs.provenance import command_line, commit, is_of_this_code, now
from experiments.benchmarks.speed.harness import (
    KEEP_MEMORY,
    Conditions,
    Contender,
    Measurement,
    measure,
    paired_ratios,
    summary,
)
from experiments.kit.machine import hardware, name_of_gpu

ROOT = Path(__file__).resolve().parents[3]
PROJECT, TORCH, JOEYNMT, CTRANSLATE2 = "project", "torch", "joeynmt", "ctranslate2"
_MODULES = {
    PROJECT: "project_worker",
    TORCH: "torch_worker",
    JOEYNMT: "joeynmt_worker",
    CTRANSLATE2: "ctranslate2_worker",
}


@dataclasses.dataclass(frozen=True)
class Side:
    """One contender of a workload.

    Attributes:
      name: How the table calls it.
      framework: Whose worker it is: `project`, `torch`, `joeynmt` or `ctranslate2`.
      task: What the worker is asked to do.
    """

    name: str
    framework: str
    task: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Workload:
    """Contenders that do the same work.

    Attributes:
      name: Its key in the results.
      title: What is computed, in words.
      unit: The unit of work in which speeds are compared.
      sides: The contenders; the first is compared with each of the others.
      conditions: How often and how long each is measured.
      tolerance: Largest relative difference of the sides' check values.
      near_ties: Share of the check values that may differ more: a search whose beam is full drops
        one of two hypotheses by the last digits of their probabilities, with all that follow it.
    """

    name: str
    title: str
    unit: str
    sides: Sequence[Side]
    conditions: Conditions = Conditions()
    tolerance: float = 1e-4
    near_ties: float = 0.0


@dataclasses.dataclass(frozen=True)
class Setting:
    """What all workloads of a sitting share.

    Attributes:
      interpreters: The Python of each framework.
      workdir: Where inputs and the workers' standard error are kept.
      threads: Cores that a contender may use.
      keep_memory: Whether freed memory stays with the contenders.
      platform: `cpu`, or `cuda` for one GPU.
    """

    interpreters: Mapping[str, str]
    workdir: Path
    threads: int
    keep_memory: bool = True
    platform: str = "cpu"

    def environment(self) -> dict[str, str]:
        """Returns the variables that all contenders get."""
        threads = str(self.threads)
        # The same allocator settings for all contenders, or a comparison would favour this project.
        malloc = KEEP_MEMORY if self.keep_memory else {}
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            "PYTHONPATH": os.pathsep.join(paths),
            "JAX_PLATFORMS": self.platform,
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # a GPU is shared by all contenders
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            **malloc,
        }

    def contender(self, side: Side) -> Contender:
        """Returns the process of a side."""
        task = json.dumps({**side.task, "threads": self.threads, "platform": self.platform})
        module = f"experiments.benchmarks.speed.{_MODULES[side.framework]}"
        return Contender(side.name, (self.interpreters[side.framework], "-m", module, task))

    def prepare(self, task: Mapping[str, Any]) -> None:
        """Lets the project's worker write inputs.

        Raises:
          UserError: If it cannot, with the last line that it said.
        """
        side = Side("inputs", PROJECT, task)
        environment = {**os.environ, **self.environment()}
        done = subprocess.run(
            self.contender(side).command, env=environment, capture_output=True, text=True
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise UserError(f"inputs: could not be prepared: {lines[-1]}")


def find_interpreters(
    torch_python: str, joeynmt_python: str = "", ctranslate2_python: str = ""
) -> dict[str, str]:
    """Returns the Python of each framework; by default that of PyTorch is this one.

    Args:
      torch_python: Path of a Python that has PyTorch, or empty.
      joeynmt_python: Path of a Python that has JoeyNMT, or empty for the same.
      ctranslate2_python: Path of a Python that has CTranslate2, or empty for PyTorch's.
    """
    found = {PROJECT: sys.executable}
    found[TORCH] = torch_python or os.environ.get("TORCH_PYTHON", "") or sys.executable
    for name, path in ((JOEYNMT, joeynmt_python), (CTRANSLATE2, ctranslate2_python)):
        found[name] = path or os.environ.get(f"{name.upper()}_PYTHON", "") or found[TORCH]
    for path in found.values():
        if not os.access(path, os.X_OK):
            raise UserError(f"interpreter: expected a Python, found none at {path}")
    return found


def run_workload(workload: Workload, setting: Setting, log: Callable = print) -> dict[str, Any]:
    """Measures a workload.

    Returns:
      The result as JSON can hold it, with all that is needed to judge it.

    Raises:
      UserError: If the project itself fails, or a contender computes something else.
    """
    log(f"{workload.name}: {workload.title}")
    measured, failures = measure(
        [setting.contender(side) for side in workload.sides],
        workload.conditions,
        directory=setting.workdir / "logs" / workload.name,
        environment=setting.environment(),
        log=log,
    )
    return result_of(workload, setting, measured, failures)


def result_of(
    workload: Workload,
    setting: Setting,
    measured: Mapping[str, Measurement],
    failures: Mapping[str, str],
) -> dict[str, Any]:
    """Returns what was measured of a workload, as JSON can hold it; raises as `run_workload`."""
    first = workload.sides[0].name
    if first not in measured:
        raise UserError(f"{workload.name}: {first} failed: {failures[first]}")
    agreement = check_agreement(workload, measured)
    return {
        "title": workload.title,
        "unit": workload.unit,
        "description": describe(workload, setting),
        "command": command_without_paths(command_line()),
        "commit": commit(),
        "time": now(),
        "hardware": machine(setting.platform),
        "agreement": agreement,
        "near_ties": workload.near_ties,
        "contenders": {
            name: _result(each, measured[first], workload.unit) for name, each in measured.items()
        },
        "failures": dict(failures),
    }


def check_agreement(workload: Workload, measured: Mapping[str, Measurement]) -> dict[str, float]:
    """Checks that all sides compute the same from the same inputs and weights.

    Returns:
      The largest relative difference of each side from the first, where both told, without those
      of near ties.

    Raises:
      UserError: If more differ by more than the workload's tolerance than may.
    """
    first, *others = [side.name for side in workload.sides if side.name in measured]
    expected = measured[first].ready.get("check")
    differences = {}
    for name in others:
        found = measured[name].ready.get("check")
        if expected is None or found is None:
            continue
        relative = np.abs(np.asarray(found) - expected) / np.abs(expected)
        # NaN is the largest, and is above any tolerance.
        place = relative.size - 1 - int(workload.near_ties * relative.size)
        differences[name] = float(np.sort(relative, axis=None)[place])
        if not differences[name] <= workload.tolerance or np.isnan(relative).any():
            raise UserError(
                f"{workload.name}: expected {name} to compute what {first} does, found a relative "
                f"difference of {differences[name]:.2g}"
            )
    return differences


def describe(workload: Workload, setting: Setting) -> dict[str, Any]:
    """Returns everything that decides what is measured, but for the code and the machine."""
    sides = [dataclasses.asdict(side) for side in workload.sides]
    return {
        "sides": json.loads(json.dumps(sides).replace(str(setting.workdir), "WORKDIR")),
        "conditions": dataclasses.asdict(workload.conditions),
        "threads": setting.threads,
        "keep_memory": setting.keep_memory,
    }


def is_current(result: Mapping[str, Any] | None, workload: Workload, setting: Setting) -> bool:
    """Tells whether a result is whole, and of this code, these settings and this machine."""
    return result is not None and (
        not result["failures"]
        and result["description"] == describe(workload, setting)
        and is_of_this_code(result["commit"])
        and result["hardware"] == machine(setting.platform)
    )


def machine(platform: str) -> dict[str, Any]:
    """Describes the hardware that contenders compute on: this machine, with its GPU if on that."""
    return {**hardware(), **({"gpu": name_of_gpu()} if platform == "cuda" else {})}


def command_without_paths(command: str) -> str:
    """Leaves out the options that only say where things are on this machine."""
    peers = ("--torch_python", "--joeynmt_python", "--ctranslate2_python")
    local = (*peers, "--workdir", "--out")
    words = shlex.split(command)
    return shlex.join(word for word in words if word.partition("=")[0] not in local)


def _result(measured: Measurement, reference: Measurement, unit: str) -> dict[str, Any]:
    ready = {name: value for name, value in measured.ready.items() if name != "check"}
    steady = measured.steady_rss_mib
    return {
        **ready,
        "milliseconds": summary([1e3 * seconds for seconds in measured.seconds]),
        "rates": {name: summary(measured.rates(name)) for name in measured.ready["units"]},
        "first_against_it": summary(paired_ratios(reference, measured, unit)),
        "peak_rss_mib": measured.peak_rss_mib,
        **({} if math.isnan(steady) else {"steady_rss_mib": steady}),
        "other_load": max(measured.other_load),
        "repetitions": measured.repetitions,
        "set_up_seconds": measured.set_up_seconds,
        "seconds": measured.seconds,
    }
