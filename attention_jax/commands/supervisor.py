"""Runs a training again when it was cut off, as long as it gets on."""

import contextlib
import fcntl
import pathlib
import subprocess
import sys
import time
from collections.abc import Sequence

from attention_jax.commands import children

_POLL_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 300.0
_UNLOCK_SECONDS = 120.0
# Another run would end the same way.
_FINAL = (0, children.MISTAKE, children.INTERRUPTED, 126, 127)


class Supervisor:
    """Starts a command, and starts it again; its run directory shows whether it gets on."""

    def __init__(self, command: Sequence[str], *, retries: int, wait: int):
        """Starts nothing yet.

        Args:
          command: A training with a `--workdir`, or a launcher of one.
          retries: How many times, one after another, it may end without a new checkpoint.
          wait: Seconds before it is started again; twice as many after every end without progress.

        Raises:
          ValueError: If the command names no run directory.
        """
        workdir = children.workdir_of(command)
        if workdir is None:
            raise ValueError("expected a command with --workdir=DIRECTORY, to see whether it gets "
                             f"on, found {' '.join(command)!r}")  # fmt: skip
        self._command = list(command)
        self._workdir = workdir
        self._retries = retries
        self._wait = wait

    def run(self) -> int:
        """Runs the command until it is finished, told to stop, or stuck.

        Returns:
          The exit code of its last run.

        Raises:
          OSError: If it cannot be started.
        """
        stuck = 0
        with children.signals() as received:
            while True:
                before = self.newest_step()
                code, stopped = self._run_once(received)
                if code in _FINAL or stopped:
                    return code
                after = self.newest_step()
                stuck = 0 if after > before else stuck + 1
                state = f"step {after} is saved" if after >= 0 else "nothing is saved yet"
                ended = f"supervise: {children.describe(code)}, {state}"
                if stuck > self._retries:
                    self._say(f"{ended}; given up after {self._retries} retries without progress")
                    return code
                seconds = min(self._wait * 2 ** max(stuck - 1, 0), _LONGEST_WAIT_SECONDS)
                note = f" (retry {stuck} of {self._retries} without progress)" if stuck else ""
                self._say(f"{ended}; started again in {seconds:g} s{note}")
                if self._sleep(seconds, received) or self._locked(received):
                    return code

    def newest_step(self) -> int:
        """Returns the newest step whose saving was completed, -1 for none."""
        paths = self._workdir.glob("checkpoints/*/commit_success.txt")
        return max((int(p.parent.name) for p in paths if p.parent.name.isdigit()), default=-1)

    def _run_once(self, received: list[int]) -> tuple[int, bool]:
        """Returns the exit code, and whether we were told to stop meanwhile."""
        child = children.start(self._command)
        stopped = False
        while child.poll() is None:
            while received:
                stopped = True
                children.stop(child, received.pop(0))
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_POLL_SECONDS)
        return children.exit_code(child), stopped

    def _sleep(self, seconds: float, received: list[int]) -> bool:
        """Waits, and returns whether it was told to stop."""
        deadline = time.monotonic() + seconds
        while not received and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return bool(received)

    def _locked(self, received: list[int]) -> bool:
        """Waits for a process that still saves in the directory; returns whether told to stop."""
        deadline = time.monotonic() + _UNLOCK_SECONDS
        while time.monotonic() < deadline and not _is_free(self._workdir / ".lock"):
            if self._sleep(_POLL_SECONDS, received):
                return True
        return False

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


def _is_free(lock: pathlib.Path) -> bool:
    try:
        with lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # there is none, or the file system has no locks
        return True
    return True
