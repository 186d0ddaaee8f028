"""The bench of the fault drill: trainings that scenarios start, interrupt and compare."""

import dataclasses
import functools
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from attention_jax.plotting.curves import read_metrics
from attention_jax.runs.config import ExperimentConfig, from_config_dict
from attention_jax.runs.run_directory import RunDirectory
from experiments.benchmarks.reliability.sabotage import VARIABLE, Fault

CONFIG = "experiments/benchmarks/reliability/tiny.py"
STEPS = 60
_ROOT = Path(__file__).resolve().parents[3]
_LONGEST_SECONDS = 600
HEARTBEAT_SECONDS = 10  # of runs of which a process is killed
_LAST_LINES, _LAST_CHARACTERS = 12, 2000  # of a command that ended otherwise than expected


class Skipped(Exception):
    """Raised by a scenario that this machine does not allow; the message says why."""


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
      code: Its exit code, negative for a signal.
      output: All that it wrote.
    """

    code: int
    output: str

    def unless(self, code: int, *words: str) -> str | None:
        """Compares with an expected end; returns the difference in code or words, or None."""
        if self.code != code:
            return f"exit code {self.code}, not {code}: {self.ending}"
        missing = [word for word in words if word not in self.output]
        return f"did not say {missing[0]!r}: {self.ending}" if missing else None

    @property
    def is_one_line(self) -> bool:
        """Whether a mistake was answered with a single line and no traceback."""
        errors = [line for line in self.output.splitlines() if line.startswith("error: ")]
        return len(errors) == 1 and "Traceback" not in self.output

    @property
    def ending(self) -> str:
        """The last lines that say anything, from which it can be told what went wrong."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return " | ".join(lines[-_LAST_LINES:])[-_LAST_CHARACTERS:] or "nothing was said"


@dataclasses.dataclass(frozen=True)
class Bench:
    """The place where scenarios work, with runs that they share.

    Attributes:
      folder: Directory for run directories, to be removed at the end.
      is_short: Whether few trials are enough.
      seed: Seed of the random moments of faults.
    """

    folder: Path
    is_short: bool
    seed: int = 0

    @property
    def options(self) -> list[str]:
        """Arguments of every training: outputs are compared in a full drill only."""
        return ["--config.evaluation.splits=()"] if self.is_short else []

    def random(self, name: str) -> random.Random:
        """Returns the random numbers of a scenario, the same in every drill of this seed."""
        return random.Random(f"{self.seed} {name}")

    def workdir(self, name: str) -> Path:
        """Returns a run directory that does not exist yet."""
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        return path

    @functools.cached_property
    def uninterrupted(self) -> Path:
        """A run of one process that was left alone; not to be changed."""
        return self._left_alone("uninterrupted", 1)

    @functools.cached_property
    def uninterrupted_pair(self) -> Path:
        """A run of two processes that was left alone; not to be changed."""
        return self._left_alone("uninterrupted_pair", 2)

    @functools.cached_property
    def cut_off(self) -> Path:
        """A run that was killed while it trained, with two whole checkpoints; not to be changed."""
        path = self.folder / "cut_off"
        ended = self.train(path, fault=Fault((signal.SIGKILL,), step=30))
        # A run that ended in any other way is no reference to begin with.
        if problem := ended.unless(-signal.SIGKILL):
            raise RuntimeError(f"the drill cannot begin: {problem}")
        for folder in (path / "checkpoints").iterdir():
            if not (folder / "commit_success.txt").exists():  # it was being saved
                shutil.rmtree(folder)
        return path

    def copy(self, run: Path, name: str) -> Path:
        """Returns a copy of a run directory, for a scenario to do what it likes with."""
        return Path(shutil.copytree(run, self.workdir(name)))

    def train(
        self,
        workdir: Path,
        *arguments: str,
        fault: Fault | None = None,
        processes: int = 1,
        supervised: bool = False,
    ) -> Ended:
        """Runs the command that trains in a directory, or continues to.

        Args:
          workdir: The run directory.
          *arguments: Further arguments of the command.
          fault: What happens to it.
          processes: How many train together.
          supervised: Whether it is started again until it is finished.
        """
        module = "launch.train" if fault is None else "experiments.benchmarks.reliability.sabotage"
        command = [sys.executable, "-m", module, f"--config={CONFIG}", f"--workdir={workdir}"]
        command += [*self.options, *arguments]
        if processes > 1:
            # The supervisor goes outside: it starts all processes again when one has died.
            command = ["launch/local.sh", str(processes), *command]
        if supervised:
            command = ["launch/supervise.sh", "--wait=1", *command]
        return run(command, fault)

    def _left_alone(self, name: str, processes: int) -> Path:
        path = self.folder / name
        if not path.exists():
            ended = self.train(path, processes=processes)
            if problem := ended.unless(0):
                raise RuntimeError(f"the drill cannot begin: {problem}")
        return path


def run(command: Sequence[str], fault: Fault | None = None) -> Ended:
    """Runs a command in the root of the repository."""
    environment = {
        **os.environ,
        "PYTHON": sys.executable,
        VARIABLE: fault.to_json() if fault else "",
    }
    # Elsewhere the usual patience is kept: a machine that stands still for seconds is no death.
    if fault and signal.SIGKILL in fault.signals:
        environment["ATTENTION_JAX_HEARTBEAT_SECONDS"] = str(HEARTBEAT_SECONDS)
    done = subprocess.run(
        command, cwd=_ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", timeout=_LONGEST_SECONDS,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout)


def parameters(workdir: Path) -> str | None:
    """Returns the hash of a run's last parameters, None if it was not trained to its end."""
    return json.loads((workdir / "run.json").read_text()).get("parameters")


def saved_steps(workdir: Path) -> list[int]:
    """Returns the steps of a run whose saving was completed."""
    paths = workdir.glob("checkpoints/*/commit_success.txt")
    return sorted(int(path.parent.name) for path in paths if path.parent.name.isdigit())


def validation_losses(workdir: Path) -> dict[int, float]:
    """Returns the validation losses of a run by their steps."""
    lines = read_metrics(workdir / "metrics.jsonl")
    return {line["step"]: line["loss"] for line in lines if line["split"] == "validation"}


def difference(workdir: Path, expected: Path) -> str | None:
    """Compares the end of a run with that of an uninterrupted one, to the last bit.

    Returns:
      The first difference, in parameters, validation losses or outputs; None if there is none.
    """
    if parameters(workdir) is None or parameters(workdir) != parameters(expected):
        return "other parameters"
    if validation_losses(workdir) != validation_losses(expected):
        return "other validation losses"
    outputs = [run / "predictions.test.txt" for run in (workdir, expected)]
    if outputs[1].exists() and outputs[0].read_bytes() != outputs[1].read_bytes():
        return "other outputs"
    return None


def content(workdir: Path) -> dict[str, str]:
    """Returns a hash of every file of a run but its lock and the logs."""
    return {
        str(path.relative_to(workdir)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(workdir.rglob("*"))
        if path.is_file() and path.name != ".lock" and "logs" not in path.parts
    }


def config_of(workdir: Path) -> ExperimentConfig:
    """Returns the config of a run."""
    return from_config_dict(RunDirectory(workdir).read_config())
