"""The runner of a grid: starts its runs, some at a time, as processes with a log file each.

A run that fails is reported, and the others go on. On SIGTERM or SIGINT the runner passes the
signal on and waits: training saves, and the same command later resumes it. However the runner ends,
it leaves no orphaned process behind.
"""

import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from attention_jax.errors import UserError
from attention_jax.runs.progress import format_seconds
from experiments.kit.grid import Run

FAILED = 1
_SIGNAL_CODES = {signal.SIGTERM: 75, signal.SIGINT: 130}
_POLL_SECONDS = 0.2
_STATUS_EVERY_SECONDS = 60.0
_TAIL_BYTES = 4096
_TRAINING_SHARE = 0.9  # of a run's time; the rest is evaluation


@dataclasses.dataclass
class _Active:
    """A run in progress; its commands run one after the other.

    Attributes:
      run: The run.
      cores: CPU cores that its processes are pinned to; empty for all.
      rest: Commands that are yet to start.
      process: The process of the present command.
      started: Start of the first command, in monotonic seconds.
    """

    run: Run
    cores: Sequence[int]
    rest: list[list[str]]
    process: subprocess.Popen
    started: float


def run_all(runs: Sequence[Run], jobs: int = 1, say: Callable[[str], None] = print) -> int:
    """Runs all runs that are not finished yet.

    Args:
      runs: All runs, in the order in which they start.
      jobs: Number of runs at a time; they share the cores evenly.
      say: Shows a line on the screen.

    Returns:
      The exit code: 0; 1 if a run failed; 75 or 130 after SIGTERM or SIGINT.

    Raises:
      RunDirectoryError: If nothing can be written where runs train or records are kept.
    """
    waiting = [run for run in runs if not run.is_finished()]
    if not waiting:
        say(f"All {len(runs)} runs are finished.")
        return 0
    waiting[0].require_room()  # now, not after hours of training whose record cannot be kept
    say(f"{len(runs)} runs, {len(runs) - len(waiting)} finished; {jobs} at a time")
    with _signals() as received:
        schedule = _Schedule(waiting, len(runs), jobs, say)
        try:
            return schedule.work(received)
        finally:
            schedule.end()


class _Schedule:
    def __init__(self, waiting: list[Run], total: int, jobs: int, say: Callable[[str], None]):
        self._waiting = list(waiting)
        self._total = total
        self._say = say
        self._slots = _shares_of_cores(jobs)
        self._active: list[_Active] = []
        self._done = 0
        self._failed: list[str] = []
        self._began = time.monotonic()
        self._last_status = self._began

    def work(self, received: list[signal.Signals]) -> int:
        """Works until all runs are done, or until the active ones have ended after a signal."""
        stopped = None
        while self._active or (self._waiting and not stopped):
            while received:
                stopped = received.pop(0)
                self._pass_on(stopped)
            while self._slots and self._waiting and not stopped:
                self._start(self._waiting.pop(0), self._slots.pop(0))
            time.sleep(_POLL_SECONDS)
            for active in list(self._active):
                self._look_after(active, stopped)
            self._show_status()
        if self._failed:
            self._say(f"failed: {', '.join(self._failed)}; the same command tries them again")
        if stopped:
            return _SIGNAL_CODES[stopped]
        return FAILED if self._failed else 0

    def end(self) -> None:
        """Stops runs that are still active, and waits for them to save.

        They have sessions of their own, so no signal of the terminal reaches them.
        """
        for active in self._active:
            active.process.terminate()
        for active in self._active:
            active.process.wait()

    def _start(self, run: Run, cores: Sequence[int]) -> None:
        first, *rest = run.commands()
        try:
            run.log.parent.mkdir(parents=True, exist_ok=True)
            process = _launch(first, run, cores)
        except OSError as error:
            self._slots.append(cores)
            self._fail(run, f"it cannot start: {error}")
            return
        self._active.append(_Active(run, cores, rest, process, time.monotonic()))
        self._say(f"{run.name}: started, log in {run.log}")

    def _look_after(self, active: _Active, stopped: signal.Signals | None) -> None:
        code = active.process.poll()
        if code is None:
            return
        run, reason = active.run, f"exit code {code}: {_last_line(active.run.log)}"
        # The next command of the same run, on the same cores.
        if code == 0 and active.rest and not stopped:
            try:
                active.process = _launch(active.rest[0], run, active.cores)
                del active.rest[0]
                return
            except OSError as error:
                reason = f"it cannot go on: {error}"
        self._active.remove(active)
        self._slots.append(active.cores)
        if code == 0 and not active.rest:
            self._finish(active)
        elif stopped:
            self._say(f"{run.name}: stopped; the same command continues it")
        else:
            self._fail(run, reason)

    def _finish(self, active: _Active) -> None:
        run = active.run
        try:
            run.keep()
        except UserError as error:
            self._fail(run, str(error))
            return
        self._done += 1
        took = format_seconds(time.monotonic() - active.started)
        self._say(f"{run.name}: finished in {took}  {_headline(run)}  {self._outlook()}")

    def _fail(self, run: Run, reason: str) -> None:
        self._failed.append(run.name)
        self._say(f"{run.name}: FAILED, {reason} (log in {run.log})")

    def _pass_on(self, number: signal.Signals) -> None:
        self._say(f"{number.name}: waiting for {len(self._active)} runs to save")
        for active in self._active:
            active.process.send_signal(number)

    def _show_status(self) -> None:
        now = time.monotonic()
        if self._active and now - self._last_status >= _STATUS_EVERY_SECONDS:
            self._last_status = now
            for active in self._active:
                self._say(f"  {active.run.name}: {_last_line(active.run.log)}")
            self._say(f"  {self._outlook()}")

    def _outlook(self) -> str:
        """Estimates, in words, how long the runs that are left will take."""
        # Runs in progress count by the share of their steps; all runs are taken to be alike.
        partly = sum(_fraction(active.run.log) for active in self._active)
        left = len(self._waiting) + len(self._active)
        finished = f"{self._total - left - len(self._failed)} of {self._total} finished"
        if self._done + partly == 0 or not left:
            return finished
        seconds = (time.monotonic() - self._began) / (self._done + partly) * (left - partly)
        return f"{finished}, about {format_seconds(seconds)} left"


@contextlib.contextmanager
def _signals() -> Iterator[list[signal.Signals]]:
    """Collects SIGTERM and SIGINT while the block runs, instead of dying of them."""
    received: list[signal.Signals] = []

    def note(number: int, frame: object) -> None:
        received.append(signal.Signals(number))

    old = {number: signal.signal(number, note) for number in _SIGNAL_CODES}
    try:
        yield received
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _launch(command: Sequence[str], run: Run, cores: Sequence[int]) -> subprocess.Popen:
    """Starts a process in a session of its own: it gets Ctrl-C once, from the runner."""
    with run.log.open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    if cores:
        with contextlib.suppress(OSError):  # the process may have ended already
            # Threads inherit the affinity; the process makes them long after this line.
            os.sched_setaffinity(process.pid, cores)
    return process


def _shares_of_cores(jobs: int) -> list[list[int]]:
    """Divides the cores among jobs: pinned processes do not slow one another down as much."""
    if jobs == 1 or not hasattr(os, "sched_setaffinity"):
        return [[] for _ in range(jobs)]
    cores = sorted(os.sched_getaffinity(0))
    size = max(len(cores) // jobs, 1)
    return [[cores[(job * size + i) % len(cores)] for i in range(size)] for job in range(jobs)]


def _tail(log: Path) -> str:
    """Returns the end of a log; empty if somebody has removed it, which is no failure."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            return file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""


def _last_line(log: Path) -> str:
    lines = [line for line in _tail(log).splitlines() if line.strip()]
    return lines[-1].strip() if lines else "nothing printed yet"


def _fraction(log: Path) -> float:
    """Estimates the share of a run that is done from the last progress line of its log."""
    steps = re.findall(r"step (\d+)/(\d+)", _tail(log))
    return _TRAINING_SHARE * int(steps[-1][0]) / int(steps[-1][1]) if steps else 0.0


def _headline(run: Run) -> str:
    shown = ("per", "wer", "bleu", "accuracy")
    metrics = run.results().get("test", {})
    return "  ".join(f"{name} {metrics[name]:.2f}" for name in shown if name in metrics)
