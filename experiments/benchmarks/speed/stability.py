"""Stability of training: no recompilation and no memory growth once batch shapes are known."""

import json
import statistics
from pathlib import Path
from typing import Any

from absl import flags

from attention_jax.commands import cli
from attention_jax.paths import expanded

USAGE = """
Trains on CMUdict with its length buckets, until every shape was met and then 500 steps more, and
checks that those compile nothing and that the process does not grow. About two minutes; exits
with 1 if a check fails.

  python -m experiments.benchmarks.speed.stability [--steps=N] [--out=DIRECTORY]
    [--workdir=DIRECTORY]
"""
_COMPILATION = "/jax/core/compile/backend_compile_duration"
_GROWTH_MIB = 16.0


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_integer("steps", 500, "Steps to watch.", lower_bound=8)
    flags.DEFINE_string("out", "docs/results/speed", "Where results are written.")
    flags.DEFINE_string("workdir", "runs/speed", "Where vocabularies are kept.")
    return argv


def main() -> int:
    """Measures, writes, judges."""
    from attention_jax.data.builders.cmudict import Config as CmudictConfig
    from experiments.benchmarks.speed import report

    config = CmudictConfig(batch_size=32)
    workdir = expanded(flags.FLAGS.workdir) / "stability"
    result = watch(config, flags.FLAGS.steps, workdir, hidden=64)
    path = expanded(flags.FLAGS.out) / "stability.json"
    results = report.appended(report.load_measured(path), result)
    report.write_text(path, json.dumps(results, indent=1) + "\n")
    print(f"{result['shapes']} batch shapes, all met within {result['warm_up_steps']} steps")
    print(f"{result['steps']} steps more: {result['compilations']} compilations")
    print(
        f"resident memory {result['memory_mib'][-1]:.0f} MiB, "
        f"growth {result['memory_growth_mib']:+.1f} MiB"
    )
    return 0 if result["is_stable"] else 1


def watch(config: Any, num_steps: int, workdir: Path, hidden: int) -> dict[str, Any]:
    """Trains until all batch shapes were met, then `num_steps` more, and reports on those.

    Args:
      config: Of the data.
      num_steps: Steps to watch.
      workdir: Where vocabularies are kept.
      hidden: Depth of the model.
    """
    import jax

    from attention_jax.data.loading import build_task
    from attention_jax.data.pipeline import make_train_iterator
    from attention_jax.runs.provenance import command_line, commit
    from experiments.benchmarks.speed.benchmark import command_without_paths
    from experiments.benchmarks.speed.project_model import Trainer
    from experiments.benchmarks.speed.serve import resident_memory
    from experiments.benchmarks.speed.workloads import Sizes
    from experiments.kit.machine import hardware

    task = build_task(config, workdir / "vocabulary")
    batches = make_train_iterator(task, config, seed=0)
    vocabulary = max(task.source_vocabulary.size, task.target_vocabulary.size)
    trainer = Trainer.create(Sizes(vocabulary=vocabulary, embedding=hidden // 2, hidden=hidden))
    compilations = []
    # JAX reports every compilation by the backend as an event with this name.
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **unused: event == _COMPILATION and compilations.append(seconds)
    )
    missing = {(bucket.source_length, bucket.target_length) for bucket in batches.buckets}
    shapes, warm_up_steps = len(missing), 0
    while missing:
        batch = next(batches)
        trainer.train(batch)
        missing.discard((batch["source"].shape[1], batch["target"].shape[1]))
        warm_up_steps += 1
    before, memory = len(compilations), []
    for _ in range(num_steps):
        trainer.train(next(batches))
        memory.append(resident_memory())
    new, growth = len(compilations) - before, growth_of(memory)
    return {
        "command": command_without_paths(command_line()),
        "commit": commit(),
        "jax": jax.__version__,
        "hardware": hardware(),
        "shapes": shapes,
        "warm_up_steps": warm_up_steps,
        "warm_up_compilations": before,
        "steps": num_steps,
        "compilations": new,
        "memory_mib": memory[:: max(1, num_steps // 50)] + memory[-1:],
        "memory_growth_mib": growth,
        "is_stable": before > 0 and new == 0 and growth <= _GROWTH_MIB,
    }


def growth_of(memory: list[float]) -> float:
    """Computes the growth of some values: median of the last quarter minus that of the first."""
    quarter = max(1, len(memory) // 4)
    return statistics.median(memory[-quarter:]) - statistics.median(memory[:quarter])


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
