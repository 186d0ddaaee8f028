"""The fault drill: injects faults into trainings, and counts what is lost; see `USAGE`."""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from absl import flags

from attention_jax.commands import cli
from attention_jax.errors import UserError
from attention_jax.paths import expanded
from experiments.benchmarks.reliability import damage, interruptions, numbers, report, storage
from experiments.benchmarks.reliability.bench import Bench, Skipped

USAGE = """
Kills trainings, fills their disk, damages their checkpoints, feeds them bad numbers; then checks
that each ends, when continued, as one that was left alone. Prints a table of scenarios, trials and
losses, and exits with 1 if anything was lost. About a quarter of an hour on two CPU
cores.

  python -m experiments.benchmarks.reliability.drill [--OPTION=VALUE ...]

  --short            few trials of each scenario, in a few minutes; nothing is written
  --only=NAME,NAME   these scenarios only, by the names that --list shows
  --list             show the scenarios and stop
  --seed=N           of random moments (0)
  --out=DIRECTORY    where the record is written (docs/results/reliability)
  --keep             leave the run directories where they are
"""

Scenario = Callable[[Bench], interruptions.Trials]

SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "killed": (
        "one run killed (kill -9) again and again, compared at its end",
        interruptions.killed,
    ),
    "told_to_stop": ("SIGTERM, or Ctrl-C", interruptions.told_to_stop),
    "told_twice": ("second SIGTERM during a save", interruptions.told_twice),
    "one_of_two_killed": ("kill -9 of one of two processes", interruptions.one_of_two_killed),
    "supervised": ("the same, supervised", interruptions.supervised),
    "one_of_two_told": ("SIGTERM to one of two processes", interruptions.one_of_two_told_to_stop),
    "other_number": (
        "saved by two processes, continued by one, and back",
        interruptions.other_number_of_processes,
    ),
    "every_file": (
        "a file of a checkpoint truncated, zeroed, bit-flipped, deleted",
        damage.every_file,
    ),
    "leftovers": ("empty, temporary or uncommitted step directory", damage.leftovers),
    "full_disk": ("disk full", storage.full_disk),
    "read_only": ("read-only directory", storage.read_only),
    "bad_gradient": ("NaN or infinite gradient at a step", numbers.bad_gradient),
    "loss_spike": ("loss spike (x 100 and more)", numbers.loss_spike),
    "other_config": ("changed batch size or model on resume", numbers.other_config),
    "same_seed": ("two runs of one seed, and another seed", numbers.same_seed),
    "intervals": ("other intervals of logging, validation and saving", numbers.intervals),
}
# `supervised` is the first in short; the others have tests of their own, which start less.
_ONLY_IN_FULL = (
    "one_of_two_killed", "told_twice", "one_of_two_told", "other_number", "other_config",
)  # fmt: skip


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_bool("short", False, "Few trials.")
    flags.DEFINE_list("only", [], "Scenarios.")
    flags.DEFINE_bool("list", False, "Show the scenarios and stop.")
    flags.DEFINE_integer("seed", 0, "Of random moments.")
    flags.DEFINE_string("out", "docs/results/reliability", "Where the record is written.")
    flags.DEFINE_bool("keep", False, "Leave the run directories.")
    return argv


def main() -> int:
    """Tries, tells, judges."""
    names = _chosen()
    if flags.FLAGS.list:
        for name in names:
            print(f"{name:<18} {SCENARIOS[name][0]}")
        return 0
    cli.use_compilation_cache()
    folder = Path(tempfile.mkdtemp(prefix="attention_jax_drill_"))
    is_short, seed = flags.FLAGS.short, flags.FLAGS.seed
    try:
        bench = Bench(folder, is_short=is_short, seed=seed)
        outcomes = [_try(name, bench) for name in names]
    finally:
        if flags.FLAGS.keep:
            print(f"The run directories are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    facts = report.record(outcomes, is_short=is_short, seed=seed)
    print(f"{facts['trials']} trials, {facts['losses']} lost")
    if not (is_short or flags.FLAGS.only):
        paths = report.save(expanded(flags.FLAGS.out), outcomes, facts)
        print(f"Written: {', '.join(map(str, paths))}")
    return 1 if facts["losses"] else 0


def _chosen() -> list[str]:
    for name in flags.FLAGS.only:
        if name not in SCENARIOS:
            known = ", ".join(SCENARIOS)
            raise UserError(f"--only: expected some of {known}, found {name!r}")
    left_out = _ONLY_IN_FULL if flags.FLAGS.short else ()
    return flags.FLAGS.only or [name for name in SCENARIOS if name not in left_out]


def _try(name: str, bench: Bench) -> report.Outcome:
    title, scenario = SCENARIOS[name]
    started, trials, skipped = time.monotonic(), [], ""
    try:
        trials.extend(scenario(bench))
    except Skipped as reason:
        skipped = str(reason)
    losses = tuple(problem for problem in trials if problem)
    seconds = time.monotonic() - started
    outcome = report.Outcome(title, len(trials), losses, round(seconds, 1), skipped)
    print(report.line(outcome), flush=True)
    return outcome


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
