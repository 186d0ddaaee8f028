"""Multi-process training on one host: several processes as one job with one exit code."""

import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from attention_jax.commands.watched_run import workdir_of
from attention_jax.host import children
from attention_jax.host.gpus import shares_of_gpus

_POLL_SECONDS = 0.1
_KILL_AFTER_SECONDS = 30.0
_PORTS = (20000, 32000)  # below the ephemeral ports, which systems assign to connections
_TAIL_BYTES = 4096
# What the library of a CPU's collectives tells its standard output of every group of devices.
_CHATTER = re.compile(rb"^\[Gloo\] Rank \d+ is connected to .*\n", re.MULTILINE)


class LocalJob:
    """Multi-process job: starts processes, waits until all have ended, and leaves none behind.

    The log of process 0 is shown while it grows.
    """

    def __init__(self, command: Sequence[str], count: int, logs: pathlib.Path | None = None):
        """Chooses the folder of logs, without starting anything.

        Args:
          command: The command that each process runs; environment variables tell it its number.
          count: Number of processes.
          logs: Folder of `process_0.log`, ...; None for `logs/` in the run directory.
        """
        self._command = list(command)
        self._count = count
        self._workdir = workdir_of(command)
        if logs is None and self._workdir is not None:
            logs = self._workdir / "logs"
        self.logs = logs or pathlib.Path(tempfile.mkdtemp(prefix="attention_jax_logs_"))
        self._children: list[subprocess.Popen] = []
        self._shown = 0

    def run(self) -> int:
        """Runs the job.

        Returns:
          The exit code. A user's mistake takes precedence, then a failure, then an interrupt, since
          another run would not help. Otherwise it is 75 if any process ends with that, as others do
          when one is killed; else the highest.

        Raises:
          OSError: If the command cannot be started.
        """
        self.logs.mkdir(parents=True, exist_ok=True)
        self._shown = self._size_of_first_log()
        try:
            with children.signals() as received:
                self._start()
                self._watch(received)
            codes = [children.exit_code(child) for child in self._children]
        finally:
            # Also those that have ended: processes that they started may still run.
            for child in self._children:
                children.stop(child, signal.SIGKILL)
                child.wait()
        self._explain(codes)
        self._forget_mistake(codes)
        return worst(codes)

    def _log(self, number: int) -> pathlib.Path:
        return self.logs / f"process_{number}.log"

    def _start(self) -> None:
        """Starts every process, with the variables by which they find one another."""
        coordinator = f"127.0.0.1:{free_port()}"
        devices = shares_of_gpus(self._count)
        for number in range(self._count):
            environment = {
                "ATTENTION_JAX_COORDINATOR": coordinator,
                "ATTENTION_JAX_NUM_PROCESSES": str(self._count),
                "ATTENTION_JAX_PROCESS_ID": str(number),
                "PYTHONUNBUFFERED": "1",  # so that the log of process 0 can be shown as it grows
            }
            if devices:
                environment["JAX_LOCAL_DEVICE_IDS"] = ",".join(map(str, devices[number]))
            self._children.append(
                children.start(self._command, environment=environment, log=self._log(number))
            )

    def _watch(self, received: list[int]) -> None:
        """Waits until all have ended, passes signals on, and ends those that hang."""
        first_end = None
        while any(child.poll() is None for child in self._children):
            while received:
                number = received.pop(0)
                for child in self._children:
                    children.stop(child, number)
            if first_end is None and any(child.returncode for child in self._children):
                first_end = time.monotonic()
            if first_end is not None:
                self._hurry(time.monotonic() - first_end)
            self._show()
            time.sleep(_POLL_SECONDS)
        self._show(at_end=True)

    def _hurry(self, seconds: float) -> None:
        """Kills processes that have not ended some time after the first one failed."""
        # By then the heartbeat of JAX's distributed runtime must have told them.
        noticed = 2 * float(os.environ.get("ATTENTION_JAX_HEARTBEAT_SECONDS") or 30)
        if seconds > noticed + _KILL_AFTER_SECONDS:
            for child in self._children:
                children.stop(child, signal.SIGKILL)

    def _show(self, at_end: bool = False) -> None:
        """Prints the lines that process 0 has logged since the last call, without chatter."""
        with self._log(0).open("rb") as file:
            file.seek(self._shown)
            logged = file.read()
        whole = logged if at_end else logged[: logged.rfind(b"\n") + 1]
        sys.stdout.buffer.write(_CHATTER.sub(b"", whole))
        sys.stdout.buffer.flush()
        self._shown += len(whole)

    def _size_of_first_log(self) -> int:
        return self._log(0).stat().st_size if self._log(0).exists() else 0

    def _explain(self, codes: Sequence[int]) -> None:
        """Prints how processes ended, except where the output of process 0 has shown the same."""
        last = [_last_line(self._log(number)) for number in range(len(codes))]
        for number, code in enumerate(codes):
            if code == children.INTERRUPTED:  # whoever pressed Ctrl-C knows
                continue
            is_known = (code, last[number]) == (codes[0], last[0])
            says_why = code != children.RETRY or last[number].startswith("error: ")
            if code > 128 or (code and says_why and not is_known):
                said = f": {last[number]}" if code < 128 else ""
                print(
                    f"process {number} of {len(codes)}, {children.describe(code)}{said} "
                    f"(see {self._log(number)})",
                    file=sys.stderr,
                )

    def _forget_mistake(self, codes: Sequence[int]) -> None:
        """Removes the directory of a run that never began, as a single process leaves none."""
        workdir = self._workdir
        if workdir is None or self.logs.parent != workdir or (workdir / "config.json").exists():
            return
        if worst(codes) == children.MISTAKE:
            shutil.rmtree(self.logs, ignore_errors=True)
            with contextlib.suppress(OSError):  # it holds something else
                workdir.rmdir()


def _last_line(log: pathlib.Path) -> str:
    """Returns the last line of a log that is not blank, reading only its end."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode("utf-8", errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")


def worst(codes: Sequence[int]) -> int:
    """Exit code of a job: chooses among those of its processes; see `LocalJob.run`."""
    for code in (children.MISTAKE, children.FAILURE, children.INTERRUPTED, children.RETRY):
        if code in codes:
            return code
    return max(codes)


def free_port() -> int:
    """Returns a free port of this host."""
    # At random, so that jobs which start at the same time seldom choose the same one.
    for port in random.sample(range(*_PORTS), 100):
        with socket.socket() as candidate, contextlib.suppress(OSError):
            candidate.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port")
