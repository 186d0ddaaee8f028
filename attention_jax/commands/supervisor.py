"""Supervisor: restarts a training that was preempted or has failed, while it makes progress."""

import contextlib
import fcntl
import pathlib
import subprocess
import sys
import time
from collections.abc import Sequence

from attention_jax.commands.watched_run import workdir_of
from attention_jax.host import children

_POLL_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 300.0
_UNLOCK_SECONDS = 120.0
# Exit codes after which another run would end in the same way; 126 and 127 are a shell's for a
# command that it cannot run or find.
_FINAL = (0, children.MISTAKE, children.INTERRUPTED, 126, 127)


class Supervisor:
    """Supervisor: restarts a command until it finishes, or saves no new checkpoint any more."""

    def __init__(self, command: Sequence[str], *, retries: int, wait: int):
        """Checks the command, without starting it.

        Args:
          command: A training with a `--workdir`, or a launcher of one.
          retries: How many times in a row it may end without a new checkpoint.
          wait: Seconds before a restart, doubled after every end without progress.

        Raises:
          ValueError: If the command names no run directory.
        """
        workdir = workdir_of(command)
        if workdir is None:
            raise ValueError("expected a command with --workdir=DIRECTORY, to see whether it gets "
                             f"on, found {' '.join(command)!r}")  # fmt: skip
        self._command = list(command)
        self._workdir = workdir
        self._retries = retries
        self._wait = wait

    def run(self) -> int:
        """Runs the command until it has finished, is told to stop, or makes no progress.

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
        """Returns the step of the newest complete checkpoint, -1 for none."""
        # The file is the last that is written of a checkpoint.
        paths = self._workdir.glob("checkpoints/*/commit_success.txt")
        return max((int(p.parent.name) for p in paths if p.parent.name.isdigit()), default=-1)

    def _run_once(self, received: list[int]) -> tuple[int, bool]:
        """Runs the command once; returns its exit code, and whether we were told to stop."""
        child = children.start(self._command)
        stopped = False
        while child.poll() is None:
            while received:
                stopped = True
                children.stop(child, received.pop(0))
            # Python's signal handlers run between short waits, not within a long one.
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_POLL_SECONDS)
        return children.exit_code(child), stopped

    def _sleep(self, seconds: float, received: list[int]) -> bool:
        """Waits unless told to stop; returns whether it was."""
        deadline = time.monotonic() + seconds
        while not received and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return bool(received)

    def _locked(self, received: list[int]) -> bool:
        """Waits while a process still saves in the directory; returns whether told to stop."""
        deadline = time.monotonic() + _UNLOCK_SECONDS
        while time.monotonic() < deadline and not _is_free(self._workdir / ".lock"):
            if self._sleep(_POLL_SECONDS, received):
                return True
        return False

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


def _is_free(lock: pathlib.Path) -> bool:
    """Says whether no process holds a lock; closing the file releases our own at once."""
    try:
        with lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # there is none, or the file system has no locks
        return True
    return True
