"""Trains a run that is killed again and again, and one that is not, and compares the parameters.

By hand: python -m tests.end_to_end.kill_and_resume --kills=20

A process kills itself, a random time after it has started a random step: watching it from another
process would miss steps that take milliseconds.
"""

import argparse
import json
import os
import random
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CONFIG = "configs/quickstart.py:smoke"
# Saving and validating often, so that kills fall into all kinds of work.
SETTINGS = (
    "--config.training.checkpoint_every_steps=7",
    "--config.training.evaluate_every_steps=25",
    "--config.training.log_every_steps=10",
    "--config.evaluation.num_heat_maps=0",
)
_MODULE = "tests.end_to_end.kill_and_resume"
_PLAN = "KILL_AND_RESUME_PLAN"
_LONGEST_SECONDS = 550


def train(
    workdir: Path, steps: int, *, stop: tuple[int, int, float] | None = None, more: tuple = ()
) -> subprocess.CompletedProcess:
    """Runs the command that trains, or continues to train, in a directory.

    Args:
      workdir: The run directory.
      steps: Length of training.
      stop: (signal, step, seconds): which signal the process sends itself, and how long after it
        has started that step, 0 for the start of the program.
      more: Further arguments of the command.
    """
    arguments = [f"--config={CONFIG}", f"--workdir={workdir}"]
    arguments += [f"--config.training.num_steps={steps}", *SETTINGS, *more]
    module = "launch.train" if stop is None else _MODULE
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, _PLAN: json.dumps(stop)},
        capture_output=True,
        text=True,
        timeout=_LONGEST_SECONDS,
    )


def parameters(workdir: Path) -> str | None:
    """Returns the hash of a run's last parameters, None if it was not trained to its end."""
    return json.loads((workdir / "run.json").read_text()).get("parameters")


def kill_points(kills: int, steps: int, seed: int) -> list[tuple[int, int, float]]:
    """Draws the moments of kills, one in five during the start of the program."""
    rng = random.Random(seed)
    waits = sorted(rng.randrange(1, steps - 20) for _ in range(kills))
    return [
        (signal.SIGKILL, 0, rng.uniform(0.0, 8.0))
        if rng.random() < 0.2
        else (signal.SIGKILL, step, rng.uniform(0.0, 0.1))
        for step in waits
    ]


def _train_and_stop(number: int, step: int, seconds: float) -> None:
    """Trains in this process and sends it the signal."""
    from attention_jax.training.meter import Meter

    def stop() -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(0)
        os.kill(os.getpid(), number)

    def add(meter: Meter, started: int, metrics: object) -> object:
        if started == step:
            threading.Thread(target=stop, daemon=True).start()
        return original(meter, started, metrics)

    original, Meter.add = Meter.add, add
    if not step:
        threading.Thread(target=stop, daemon=True).start()
    runpy.run_module("launch.train", run_name="__main__")


def main() -> None:
    """Kills as often as asked, and reports."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="kill_and_resume_"))
    whole, killed = base / "whole", base / "killed"
    try:
        assert train(whole, arguments.steps).returncode == 0
        print(f"uninterrupted: {parameters(whole)}", flush=True)
        for stop in kill_points(arguments.kills, arguments.steps, arguments.seed):
            result = train(killed, arguments.steps, stop=stop)
            saved = sorted(int(path.name) for path in killed.glob("checkpoints/[0-9]*"))
            when = f"{stop[2]:.3f} s after step {stop[1]}"
            print(f"exit {result.returncode} {when}, saved {saved}", flush=True)
            if result.returncode > 0:
                sys.exit(result.stderr)
        print(train(killed, arguments.steps).stderr)
        print(f"killed {arguments.kills} times: {parameters(killed)}")
        sys.exit(parameters(killed) != parameters(whole) and "the parameters differ")
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    plan = json.loads(os.environ.get(_PLAN, "null"))
    if plan:
        _train_and_stop(*plan)
    else:
        main()
