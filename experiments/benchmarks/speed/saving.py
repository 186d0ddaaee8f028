"""Checkpointing speed: for how long saving holds up training."""

import dataclasses
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from absl import flags

from attention_jax.commands import cli
from attention_jax.paths import expanded
from attention_jax.sweeps import tables
from experiments.kit import machine, templates

USAGE = """
Trains the model of the comparisons, saves now and then, and measures for how long a save holds
training up: written in the background, as training does it, and waited for.

  python -m experiments.benchmarks.speed.saving [--steps=N] [--hidden=N] [--every=N]
    [--out=DIRECTORY]

  --steps    steps of training for each way of saving (60)
  --hidden   depth of the model (512)
  --every    steps from one save to the next (10)
  --out      where saving.json and saving.md are written (docs/results/speed)
"""
WAITED = "waited for"
WAYS = ("in the background", WAITED)
_SELDOM = 500  # steps between saves, as configs have it


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_integer("steps", 60, "Steps of training.", lower_bound=2)
    flags.DEFINE_integer("hidden", 512, "Depth of the model.", lower_bound=1)
    flags.DEFINE_integer("every", 10, "Steps between saves.", lower_bound=1)
    flags.DEFINE_string("out", "docs/results/speed", "Where results are written.")
    return argv


def main() -> None:
    """Measures, prints and writes."""
    from attention_jax.runs.provenance import command_line, commit, now
    from experiments.benchmarks.speed import benchmark, report

    steps, hidden, every = (flags.FLAGS[name].value for name in ("steps", "hidden", "every"))
    found = {}
    for way in WAYS:
        found[way] = measure(steps, hidden, every, is_waiting=way == WAITED)
        print(f"{way:<18}  {_described(found[way])}", flush=True)
    results = {
        "command": benchmark.command_without_paths(command_line()),
        "commit": commit(),
        "time": now(),
        "hardware": machine.hardware(),
        "hidden": hidden,
        "every": every,
        "ways": found,
    }
    report.write_beside(expanded(flags.FLAGS.out) / "saving.json", page, results)


def page(results: Mapping[str, Any]) -> str:
    """Returns the results as Markdown."""
    from attention_jax.runs.provenance import short_commit

    ways = results["ways"]
    state = next(iter(ways.values()))["state_mb"]
    rows = [
        [way, f"{found['step_ms']:.1f}", f"{found['stall_ms']:.1f}",
         f"{found['longest_stall_ms']:.1f}", f"{found['share_of_time']:.1%}",
         f"{_share(found, _SELDOM):.2%}"]
        for way, found in ways.items()
    ]  # fmt: skip
    headings = ["a save is", "step, ms", "stall per save, ms", "longest, ms",
                f"share of time, a save every {results['every']} steps",
                f"every {_SELDOM} steps"]  # fmt: skip
    text = templates.fill(
        "saving", megabytes=f"{state:.1f}", hidden=results["hidden"], seldom=_SELDOM,
        table=tables.table(headings, rows), command=results["command"],
        commit=short_commit(results["commit"]), time=results["time"],
        machine=machine.named(results["hardware"]),
    )  # fmt: skip
    return text + "\n"


def _described(found: Mapping[str, float]) -> str:
    return (
        f"state {found['state_mb']:.1f} MB  step {found['step_ms']:.1f} ms  stall per save "
        f"{found['stall_ms']:.1f} ms (longest {found['longest_stall_ms']:.1f})  "
        f"{found['share_of_time']:.2%} of the time"
    )


def _share(found: Mapping[str, float], every: int) -> float:
    return found["stall_ms"] / (found["stall_ms"] + every * found["step_ms"])


def measure(steps: int, hidden: int, every: int, *, is_waiting: bool) -> dict[str, Any]:
    """Trains and saves; returns times in milliseconds, and the state's size in megabytes.

    Args:
      steps: Of training.
      hidden: Depth of the model.
      every: Steps between saves.
      is_waiting: Whether a save is waited for, in place of being written in the background.
    """
    import jax
    import numpy as np

    from attention_jax.runs.checkpoints.checkpoint import Checkpointer
    from experiments.benchmarks.speed.project_model import Trainer
    from experiments.benchmarks.speed.workloads import Sizes

    trainer = Trainer.create(Sizes(vocabulary=8000, embedding=hidden // 2, hidden=hidden))
    tokens = np.random.default_rng(0).integers(4, 8000, (32, 16)).astype(np.int32)
    mask = np.ones(tokens.shape, bool)
    batch = {"source": tokens, "source_mask": mask, "target": tokens, "target_mask": mask}
    trainer.train(batch)
    trainer.finish()
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(trainer.state))
    seconds = []
    with tempfile.TemporaryDirectory() as folder, Checkpointer(Path(folder)) as checkpointer:
        checkpointer.save(0, trainer.state, data={}, config={}, host={})  # opens the directory
        checkpointer.wait()
        checkpointer.cost = dataclasses.replace(checkpointer.cost, saves=0, seconds=0, longest=0)
        began = time.monotonic()
        for step in range(1, steps + 1):
            started = time.monotonic()
            trainer.train(batch)
            trainer.finish()
            seconds.append(time.monotonic() - started)
            if step % every == 0:
                _save(checkpointer, step, trainer.state, is_waiting)
        cost = checkpointer.cost.describe(time.monotonic() - began)
    return {**cost, "step_ms": 1e3 * statistics.median(seconds), "state_mb": size / 1e6}


def _save(checkpointer: Any, step: int, state: Any, is_waiting: bool) -> None:
    """Saves a step; if it is waited for, the wait counts as part of the stall."""
    started, stalled = time.monotonic(), checkpointer.cost.seconds
    checkpointer.save(step, state, data={}, config={}, host={})
    if is_waiting:
        checkpointer.wait()
        seconds = time.monotonic() - started
        checkpointer.cost.seconds = stalled + seconds
        checkpointer.cost.longest = max(checkpointer.cost.longest, seconds)


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
