"""Measures for how long saving a checkpoint holds up training."""

import dataclasses
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from absl import flags

from launch import cli

USAGE = """
Trains the model of the comparisons, saves now and then, and prints for how long a save holds
training up: written in the background, as training does it, and waited for.

  python -m experiments.speed.saving [--steps=N] [--hidden=N] [--every=N]

  --steps    steps of training for each way of saving (60)
  --hidden   depth of the model (512)
  --every    steps from one save to the next (10)
"""


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_integer("steps", 60, "Steps of training.", lower_bound=2)
    flags.DEFINE_integer("hidden", 512, "Depth of the model.", lower_bound=1)
    flags.DEFINE_integer("every", 10, "Steps between saves.", lower_bound=1)
    return argv


def main() -> None:
    """Measures and prints."""
    steps, hidden, every = (flags.FLAGS[name].value for name in ("steps", "hidden", "every"))
    for is_waiting in (False, True):
        found = measure(steps, hidden, every, is_waiting=is_waiting)
        way = "waited for" if is_waiting else "in the background"
        print(
            f"{way:<17}  state {found['state_mb']:.1f} MB  step {found['step_ms']:.1f} ms  "
            f"stall per save {found['stall_ms']:.1f} ms (longest {found['longest_stall_ms']:.1f})  "
            f"share of time with a save every {every} steps {found['share_of_time']:.2%}, every "
            f"500 {found['stall_ms'] / (found['stall_ms'] + 500 * found['step_ms']):.3%}",
            flush=True,
        )


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

    from attention_jax.training.checkpoints.checkpoint import Checkpointer
    from experiments.speed.project_model import Trainer
    from experiments.speed.workloads import Sizes

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
    """Saves a step; a wait for its end is a stall, too."""
    checkpointer.save(step, state, data={}, config={}, host={})
    if is_waiting:
        started = time.monotonic()
        checkpointer.wait()
        waited = time.monotonic() - started
        checkpointer.cost.seconds += waited
        checkpointer.cost.longest = max(checkpointer.cost.longest, waited)


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
