"""Runner of a grid: starts its runs, some at a time, as processes with a log file each.

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
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from attention_jax.errors import UserError
from attention_jax.host import children
from attention_jax.host.parent_death import named_as_parent
from attention_jax.runs.progress import StatusLine, format_seconds
from attention_jax.runs.provenance import changed_own_files
from attention_jax.sweeps.grid import GridRun
from attention_jax.sweeps.slots import Slot, slots

FAILED = children.FAILURE
_SIGNAL_CODES = {signal.SIGTERM: children.RETRY, signal.SIGINT: children.INTERRUPTED}
_POLL_SECONDS = 0.2
_STATUS_EVERY_SECONDS = 60.0  # where no line can be rewritten
_TAIL_BYTES = 4096
_TRAINING_SHARE = 0.9  # of a run's time; the rest is evaluation


@runtime_checkable
class Queue(Protocol):
    """Runs to be made, of which the next may depend on what came of others."""

    def take(self) -> GridRun | None:
        """Returns the next run, None if there is none now."""
        ...

    def left(self) -> int:
        """Returns how many runs are still to be taken."""
        ...

    def finished(self, run: GridRun) -> None:
        """Is told of a run that has a record now."""
        ...


class _Listed:
    """Runs in the order of a list, whatever comes of them."""

    def __init__(self, runs: Sequence[GridRun]):
        self._runs = list(runs)

    def take(self) -> GridRun | None:
        return self._runs.pop(0) if self._runs else None

    def left(self) -> int:
        return len(self._runs)

    def finished(self, run: GridRun) -> None:
        pass


@dataclasses.dataclass
class _Active:
    """A run in progress; its commands run one after the other.

    Attributes:
      run: The run.
      slot: What its processes may use.
      rest: Commands that are yet to start.
      process: The process of the present command.
      started: Start of the first command, in monotonic seconds.
      before: The share of it that was done when it was started, of one that is continued.
    """

    run: GridRun
    slot: Slot
    rest: list[list[str]]
    process: subprocess.Popen
    started: float
    before: float


def run_all(
    runs: Sequence[GridRun],
    jobs: int = 1,
    line: StatusLine | None = None,
    is_done: Callable[[GridRun], bool] = GridRun.is_finished,
) -> int:
    """Runs all runs of which something is left to do.

    Args:
      runs: All runs, in the order in which they start.
      jobs: Number of runs at a time; they share the cores evenly.
      line: Where to say what happens; the standard output if None.
      is_done: Tells of which runs nothing is left.

    Returns:
      The exit code: 0; 1 if a run failed; 75 or 130 after SIGTERM or SIGINT.

    Raises:
      RunDirectoryError: If nothing can be written where runs train or records are kept.
    """
    line = line or StatusLine(sys.stdout, _STATUS_EVERY_SECONDS)
    waiting, made = [], []
    for run in runs:
        (made if is_done(run) else waiting).append(run)
    if changed := sorted({name for run in made for name in changed_own_files(run.facts())}):
        line.say(f"notice: changed since finished runs were made: {', '.join(changed)}")
    if not waiting:
        several = len(runs) > 1
        line.say(f"All {len(runs)} runs are finished." if several else "The run is finished.")
        return 0
    waiting[0].require_room()  # now, not after hours of training whose record cannot be kept
    line.say(f"{len(runs)} runs, {len(runs) - len(waiting)} finished; {jobs} at a time")
    return run_queue(_Listed(waiting), len(runs) - len(waiting), jobs, line)


def run_queue(queue: Queue, finished: int, jobs: int, line: StatusLine) -> int:
    """Runs what a queue gives; see `run_all`.

    Args:
      queue: The runs.
      finished: How many others are finished already.
      jobs: Number of runs at a time.
      line: Where to say what happens.
    """
    with children.signals() as received:
        schedule = _Schedule(queue, finished, jobs, line)
        try:
            return schedule.work(received)
        finally:
            schedule.end()


class _Schedule:
    def __init__(self, queue: Queue, finished: int, jobs: int, line: StatusLine):
        self._queue = queue
        self._before = finished
        self._line = line
        self._slots = slots(jobs)
        self._active: list[_Active] = []
        self._done = 0
        self._worked = 0.0  # in runs, without what earlier commands had done of them
        self._failed: list[str] = []
        self._began = time.monotonic()

    def work(self, received: list[int]) -> int:
        """Works until all runs are done, or until the active ones have ended after a signal."""
        stopped = None
        while self._active or (self._queue.left() and not stopped):
            while received:
                stopped = signal.Signals(received.pop(0))
                self._pass_on(stopped)
            while self._slots and not stopped and (run := self._queue.take()):
                self._start(run, self._slots.pop(0))
            time.sleep(_POLL_SECONDS)
            for active in list(self._active):
                self._look_after(active, stopped)
            if self._active:
                self._line.show(self._outlook())
        if self._failed:
            failed = ", ".join(self._failed)
            self._line.say(f"failed: {failed}; the same command tries them again")
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

    def _start(self, run: GridRun, slot: Slot) -> None:
        (first, *rest), before = run.commands(), _fraction(run.log)
        try:
            run.log.parent.mkdir(parents=True, exist_ok=True)
            process = _launch(first, run, slot)
        except OSError as error:
            self._slots.append(slot)
            self._fail(run, f"it cannot start: {error}")
            return
        self._active.append(_Active(run, slot, rest, process, time.monotonic(), before))
        self._line.say(f"{run.name}: started, log in {run.log}")

    def _look_after(self, active: _Active, stopped: signal.Signals | None) -> None:
        if active.process.poll() is None:
            return
        code, run = children.exit_code(active.process), active.run
        reason = f"{children.describe(code)}: {_last_line(run.log)}"
        # The next command of the same run, in the same slot.
        if code == 0 and active.rest and not stopped:
            try:
                active.process = _launch(active.rest[0], run, active.slot)
                del active.rest[0]
                return
            except OSError as error:
                reason = f"it cannot go on: {error}"
        self._active.remove(active)
        self._slots.append(active.slot)
        if code == 0 and not active.rest:
            self._finish(active)
        elif stopped:
            self._line.say(f"{run.name}: stopped; the same command continues it")
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
        self._worked += 1 - active.before
        self._queue.finished(run)
        took = format_seconds(time.monotonic() - active.started)
        self._line.say(f"{run.name}: finished in {took}  {_headline(run)}  {self._outlook()}")

    def _fail(self, run: GridRun, reason: str) -> None:
        self._failed.append(run.name)
        self._line.say(f"{run.name}: FAILED, {reason} (log in {run.log})")

    def _pass_on(self, number: signal.Signals) -> None:
        self._line.say(f"{number.name}: waiting for runs to save, {len(self._active)} of them")
        for active in self._active:
            children.stop(active.process, number)

    def _outlook(self) -> str:
        """Says how many runs are finished, and estimates how long those that are left will take."""
        # Runs in progress count by the share of their steps; all runs are taken to be alike.
        shares = [_fraction(active.run.log) for active in self._active]
        partly = sum(shares)
        new = sum(max(share - a.before, 0) for share, a in zip(shares, self._active, strict=True))
        left = self._queue.left() + len(self._active)
        finished = self._before + self._done
        said = [f"{finished} of {finished + left + len(self._failed)} finished"]
        if self._failed:
            said.append(f"{len(self._failed)} failed")
        if self._worked + new > 0 and left:
            seconds = (time.monotonic() - self._began) / (self._worked + new) * (left - partly)
            said.append(f"about {format_seconds(seconds)} left")
        return ", ".join(said)


def _launch(command: Sequence[str], run: GridRun, slot: Slot) -> subprocess.Popen:
    """Starts a process in a session of its own: it gets Ctrl-C once, from the runner.

    It ends with this process, even if that is killed. Nothing is done between fork and exec: JAX,
    whose threads run here, may not be forked.
    """
    with run.log.open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, **slot.environment, **named_as_parent()},
        )  # fmt: skip
    if slot.cores:
        with contextlib.suppress(OSError):  # the process may have ended already
            # Threads inherit the affinity; the process makes them long after this line.
            os.sched_setaffinity(process.pid, slot.cores)
    return process


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


def _headline(run: GridRun) -> str:
    shown = ("per", "wer", "bleu", "accuracy")
    metrics = run.results().get("test", {})
    return "  ".join(f"{name} {metrics[name]:.2f}" for name in shown if name in metrics)
