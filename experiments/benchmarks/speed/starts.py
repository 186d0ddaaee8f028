"""Start-up times: whole processes in turns, from their spawning to a line or to their end."""

import dataclasses
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.benchmarks.speed.harness import (
    Conditions,
    Measurement,
    WorkerError,
    cpu_seconds,
    wait_until_quiet,
)


@dataclasses.dataclass(frozen=True)
class Start:
    """A process to time.

    Attributes:
      command: The program and its arguments.
      environment: Variables beside those of this process.
      until: What the line holds at which time is taken; empty for the end of the process.
      stop: The signal that then ends it.
      said: Its standard input.
      facts: What else is to be known, from its lines, once it has ended.
    """

    command: Sequence[str]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    until: str = ""
    stop: int = signal.SIGKILL
    said: str = ""
    facts: Callable[[Sequence[str]], Mapping[str, Any]] = lambda lines: {}


@dataclasses.dataclass(frozen=True)
class StartPlan:
    """How a contender is started.

    Attributes:
      start: Makes the process to time, for a folder that is new each time.
      before: What is started first, once and untimed: it fills caches and trains what is used.
      ready: What is known of the contender, such as its version.
    """

    start: Callable[[Path], Start]
    before: Sequence[Callable[[Path], Start]] = ()
    ready: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Timed:
    """What was measured of one process.

    Attributes:
      seconds: From its spawning to the line or the end.
      other_load: Cores that other processes used meanwhile.
      peak_rss_mib: Its largest resident set.
      facts: From its lines.
    """

    seconds: float
    other_load: float
    peak_rss_mib: float
    facts: Mapping[str, Any]


def measure_starts(
    plans: Mapping[str, StartPlan],
    conditions: Conditions,
    environment: Mapping[str, str],
    log: Callable[[str], None] = print,
) -> tuple[dict[str, Measurement], dict[str, str]]:
    """Starts contenders against one another, each once in every round, in a new order.

    Returns:
      (measurements, failures): by name, as `harness.measure` returns them.
    """
    results: dict[str, Measurement] = {}
    failures: dict[str, str] = {}
    patience, order = conditions.patience, random.Random(conditions.seed)

    def started(name: str, make: Callable[[Path], Start]) -> Timed | None:
        try:
            with tempfile.TemporaryDirectory() as folder:
                return time_start(make(Path(folder)), environment, conditions.run_limit)
        except WorkerError as error:
            failures[name] = str(error)
            results.pop(name, None)
            log(f"  {name}: {error}")
            return None

    for name, plan in plans.items():
        began = time.monotonic()
        if all(started(name, make) for make in plan.before):
            ready = {"units": {"starts": 1}, **plan.ready}
            results[name] = Measurement([], [], 1, ready, time.monotonic() - began, 0.0)
            log(f"  {name}: ready after {results[name].set_up_seconds:.0f} s")
    for _ in range(conditions.rounds):
        names = list(results)
        order.shuffle(names)
        for name in names:
            patience -= wait_until_quiet(conditions.quiet_load, patience)
            if timed := started(name, plans[name].start):
                result = results[name]
                result.seconds.append(timed.seconds)
                result.other_load.append(timed.other_load)
                result.peak_rss_mib = max(result.peak_rss_mib, timed.peak_rss_mib)
                result.ready.update(timed.facts)
    return results, failures


def time_start(start: Start, environment: Mapping[str, str], limit: float) -> Timed:
    """Starts a process and waits for its line, or for its end.

    Raises:
      WorkerError: If it ends without that line or with an error, or takes longer than the limit
        in seconds.
    """
    lines: list[str] = []
    seconds = None
    all_before, began = cpu_seconds(), time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        said.write(start.said)
        said.seek(0)
        process = subprocess.Popen(
            start.command,
            stdin=said,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment, **start.environment},
        )
    timer = threading.Timer(limit, process.kill)
    timer.start()
    try:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if start.until and seconds is None and start.until in line:
                seconds = time.monotonic() - began
                process.send_signal(start.stop)
    finally:
        # Not `wait`: this tells what the process used, too.
        _, status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
    whole = time.monotonic() - began
    _check(start, lines, process.returncode, seconds, whole, limit)
    others = cpu_seconds() - all_before - used.ru_utime - used.ru_stime
    return Timed(
        whole if seconds is None else seconds,
        max(0.0, others) / whole,
        used.ru_maxrss / 1024,
        start.facts(lines),
    )


def _check(
    start: Start,
    lines: Sequence[str],
    code: int,
    seconds: float | None,
    whole: float,
    limit: float,
) -> None:
    """Raises a `WorkerError` if a process did not do what it was started for."""
    if seconds is not None or not (start.until or code):
        return
    if whole >= limit:
        raise WorkerError(f"killed: not there within {limit:.0f} s")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "no message")
    raise WorkerError(f"ended with exit code {code}: {last}")
