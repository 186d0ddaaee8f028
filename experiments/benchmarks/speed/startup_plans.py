"""How contenders of the start-up measurement are started: their commands, caches and runs."""

import functools
import json
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.benchmarks.speed.benchmark import JOEYNMT, ROOT, TORCH, Setting, Side
from experiments.benchmarks.speed.joeynmt_config import run_config
from experiments.benchmarks.speed.starts import Start, StartPlan
from experiments.benchmarks.speed.workloads import Sizes

EMPTY, FILLED = "empty", "filled"
STEPS = 3
_CONFIG = ROOT / "experiments/benchmarks/speed/startup_config.py"
_COMPILED = re.compile(r"the update is compiled for all (\d+) batch shapes")


def plan_of(side: Side, setting: Setting, kept: Path) -> StartPlan:
    """Returns how a side is started.

    Args:
      side: Its task's `kind` is `train`, `translate` or `first`; `cache` and `bytecode` say which
        caches are `filled` before, by a start that is not timed, and which are `empty`.
      setting: Of the sitting.
      kept: Where filled caches and trained runs are; what is there from before is removed.
    """
    shutil.rmtree(kept, ignore_errors=True)
    task = side.task
    if task["kind"] == "first":
        return StartPlan(functools.partial(first_run, side, setting))

    def trained(folder: Path) -> Start:
        command = _training(side, setting, folder / "run", folder)
        line = f"Step: {STEPS:8d}," if side.framework == JOEYNMT else f"step {STEPS}/{STEPS}"
        return Start(command, caches(task, kept, folder), line)

    if task["kind"] == "train":
        return StartPlan(trained, [trained] if task["cache"] == FILLED else [])

    def with_run(folder: Path) -> Start:
        command = _training(side, setting, kept / "run", folder)
        return Start(command, caches(task, kept, folder))

    def translated(folder: Path) -> Start:
        command = _translation(side, setting, kept / "run", folder)
        with open(f"{task['text']}.source", encoding="utf-8") as lines:
            return Start(command, caches(task, kept, folder), said=next(lines))

    return StartPlan(translated, [with_run, translated])


def first_run(side: Side, setting: Setting, folder: Path) -> Start:
    """A training until the update is compiled for all batch shapes; every step tells its times."""
    run = folder / "run"
    command = [
        setting.interpreters[side.framework], "-m", "launch.train",
        f"--config={ROOT / side.task['config']}", f"--workdir={run}",
        "--config.training.log_every_steps=1",
    ]  # fmt: skip

    def facts(lines: Sequence[str]) -> dict[str, Any]:
        text = (run / "metrics.jsonl").read_text(encoding="utf-8")
        return facts_of_first_run(lines, [json.loads(line) for line in text.splitlines()])

    return Start(
        command,
        caches(side.task, folder, folder),
        until="the update is compiled for all",
        stop=signal.SIGTERM,
        facts=facts,
    )


def facts_of_first_run(
    lines: Sequence[str], metrics: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns what compiling took.

    Args:
      lines: What the training said.
      metrics: The rows of its `metrics.jsonl`.

    Returns:
      The number of batch shapes, the steps until the last of them was compiled or a few more, and
      the seconds that the training waited for compilers.
    """
    found = next(match for line in lines if (match := _COMPILED.search(line)))
    training = [row for row in metrics if "seconds/compilation" in row]
    return {
        "shapes": int(found[1]),
        "steps": training[-1]["step"],
        "waited_seconds": sum(row["seconds/compilation"] for row in training),
    }


def caches(task: Mapping[str, Any], kept: Path, folder: Path) -> dict[str, str]:
    """Returns the variables that name a start's caches.

    Args:
      task: Says which are filled.
      kept: Where filled ones are.
      folder: A new one.
    """
    place = kept if task["cache"] == FILLED else folder
    compiled = {
        "JAX_COMPILATION_CACHE_DIR": str(place / "xla"),
        "TORCHINDUCTOR_CACHE_DIR": str(place / "inductor"),
    }
    if "bytecode" not in task:
        return compiled
    place = kept if task["bytecode"] == FILLED else folder
    return {**compiled, "PYTHONPYCACHEPREFIX": str(place / "bytecode")}


def _training(side: Side, setting: Setting, run: Path, folder: Path) -> list[str]:
    """Returns the command that trains for `STEPS` steps; `folder` is for what it reads."""
    task, python = side.task, setting.interpreters[side.framework]
    files = {name: f"{task['text']}.{name}" for name in ("source", "target")}
    if side.framework == JOEYNMT:
        return [*_joeynmt("train", side, setting, run, folder), "--skip-test"]
    if side.framework == TORCH:
        names = ("sizes", "batch", "compiled")
        wanted = {**files, **{name: task[name] for name in names}, "steps": STEPS}
        argument = json.dumps({**wanted, "threads": setting.threads})
        return [python, "-m", "experiments.benchmarks.speed.torch_startup", argument]
    return [
        python, "-m", "launch.train", f"--config={_CONFIG}:{task['model']}", f"--workdir={run}",
        *(f"--config.data.train_{name}={path}" for name, path in files.items()),
        f"--config.data.batch_size={task['batch']}", f"--config.training.num_steps={STEPS}",
    ]  # fmt: skip


def _translation(side: Side, setting: Setting, run: Path, folder: Path) -> list[str]:
    """Returns the command that translates with a trained run."""
    if side.framework == JOEYNMT:
        return _joeynmt("translate", side, setting, run, folder)
    return [
        setting.interpreters[side.framework], "-m", "launch.translate", f"--workdir={run}",
        f"--search.beam_size={side.task['width']}", "--search.max_length_factor=0",
        f"--search.max_length_constant={side.task['longest']}",
    ]  # fmt: skip


def _joeynmt(mode: str, side: Side, setting: Setting, run: Path, folder: Path) -> list[str]:
    """Writes JoeyNMT's config to a folder and returns a command with it."""
    task, path = side.task, folder / "joeynmt.yaml"
    search = {"width": task.get("width", 1), "longest": task.get("longest", 25)}
    config = run_config(
        Sizes(**task["sizes"]), Path(task["text"]), run, batch=task["batch"], steps=STEPS, **search
    )
    path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    return [setting.interpreters[JOEYNMT], "-m", "joeynmt", mode, str(path)]
