"""The measuring programs' flags, and their course: measure what is not measured yet."""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import flags

from attention_jax.commands import cli
from attention_jax.errors import UserError
from attention_jax.paths import expanded
from experiments.benchmarks.speed import report
from experiments.benchmarks.speed.benchmark import (
    Setting,
    Workload,
    find_interpreters,
    is_current,
    machine,
    run_workload,
)

_TORCH = flags.DEFINE_string("torch_python", "", "A Python that has PyTorch.")
_JOEYNMT = flags.DEFINE_string("joeynmt_python", "", "A Python that has JoeyNMT.")
_CTRANSLATE2 = flags.DEFINE_string("ctranslate2_python", "", "A Python that has CTranslate2.")
_OUT = flags.DEFINE_string("out", "docs/results/speed", "Where results are written.")
_WORKDIR = flags.DEFINE_string("workdir", "runs/speed", "Where inputs and logs are kept.")
_THREADS = flags.DEFINE_integer("threads", 0, "Cores to use; 0 for all.", lower_bound=0)
_KEEP_MEMORY = flags.DEFINE_bool("keep_memory", True, "Freed memory stays with a process.")
_AGAIN = flags.DEFINE_bool("again", False, "Measure again what was measured.")
_ONLY = flags.DEFINE_list("only", [], "Names of the workloads to measure; all if empty.")

OPTIONS = """
  --torch_python=PATH    a Python that has PyTorch (also TORCH_PYTHON; default: this one)
  --joeynmt_python=PATH  a Python that has JoeyNMT (also JOEYNMT_PYTHON; default: PyTorch's)
  --ctranslate2_python=PATH  one that has CTranslate2 (also CTRANSLATE2_PYTHON; default: PyTorch's)
  --out=DIRECTORY        results as JSON and Markdown (docs/results/speed)
  --workdir=DIRECTORY    inputs and the contenders' logs (runs/speed)
  --threads=N            cores for every contender (all)
  --nokeep_memory        let the contenders give freed memory back to the system
  --only=NAME,NAME       measure these workloads only
  --again                measure again what was already measured with the same code
"""


def run(
    name: str,
    usage: str,
    make_workloads: Callable[[Setting], Sequence[Workload]],
    page: Callable[[Mapping[str, Any]], str],
    platform: str = "cpu",
    keeps_memory: bool = True,
    measure: Callable[..., Mapping[str, Any]] | None = None,
    table: Callable[[Mapping[str, Any]], str] = report.table,
) -> None:
    """Runs a measuring program, which writes its page after every workload.

    Args:
      name: Of the result files.
      usage: What `--help` prints, before the options.
      make_workloads: Prepares inputs and returns the workloads.
      page: Makes the page of all results.
      platform: What contenders compute on, `cpu` or `cuda`.
      keeps_memory: Whether freed memory may stay with the contenders, if it is asked for.
      measure: Measures a workload as `run_workload` does; that if None.
      table: Makes what is printed of a workload.
    """

    def main() -> None:
        setting = dataclasses.replace(
            _read_setting(platform), keep_memory=keeps_memory and _KEEP_MEMORY.value
        )
        path = expanded(_OUT.value) / f"{name}.json"
        results, failed = report.load_results(path), []
        for workload in _choose(make_workloads(setting)):
            known = results.get(workload.name, [])
            result = report.of_machine(known, machine(platform))
            if is_current(result, workload, setting) and not _AGAIN.value:
                print(f"{workload.name}: measured already; --again measures again")
            else:
                try:
                    result = (measure or run_workload)(workload, setting, _say)
                except UserError as error:  # the others' results stand
                    _say(str(error))
                    failed.append(workload.name)
                    continue
                results[workload.name] = report.appended(known, result)
                report.write(path, results, page(results))
            print(table(result), flush=True)
        if results:
            print(f"Written: {path} and {path.with_suffix('.md')}")
        if failed:
            raise UserError(f"{', '.join(failed)}: expected measurements, found none; see above")

    cli.run(main, f"{usage.strip()}\n{OPTIONS}")


def _say(line: str) -> None:
    print(line, flush=True)


def _read_setting(platform: str) -> Setting:
    available = _available_cores()
    threads = _THREADS.value or len(available)
    if threads > len(available):
        raise UserError(f"--threads: expected at most {len(available)}, found {threads}")
    if hasattr(os, "sched_setaffinity"):  # the contenders inherit it, whatever they read
        os.sched_setaffinity(0, available[:threads])
    return Setting(
        interpreters=find_interpreters(_TORCH.value, _JOEYNMT.value, _CTRANSLATE2.value),
        workdir=expanded(_WORKDIR.value).absolute(),
        threads=threads,
        platform=platform,
    )


def _choose(workloads: Sequence[Workload]) -> list[Workload]:
    known = [workload.name for workload in workloads]
    for name in _ONLY.value:
        if name not in known:
            raise UserError(f"--only: expected some of {', '.join(known)}, found {name!r}")
    return [each for each in workloads if not _ONLY.value or each.name in _ONLY.value]


def _available_cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
