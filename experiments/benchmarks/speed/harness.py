"""The measuring harness: contenders compute in turns, one at a time.

Every contender is a process of its own that sets itself up and then waits. In every round, in a
newly shuffled order, each of them computes alone on a machine that was idle just before. Ratios are
taken within a round, so that whatever slows the machine down slows both sides of a ratio.
"""

import dataclasses
import json
import os
import random
import statistics
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

# Memory that is freed stays with the process: otherwise each step asks the system for it again.
KEEP_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TOP_PAD_": "67108864",
    "MALLOC_TRIM_THRESHOLD_": "100000000000",
}
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class WorkerError(Exception):
    """A contender died, or took too long; the message ends in what it last said."""


@dataclasses.dataclass(frozen=True)
class Contender:
    """Something to measure.

    Attributes:
      name: How tables call it.
      command: The program and its arguments; it must end in a call of `serve`.
      environment: Variables beside those that all contenders share.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Conditions:
    """Under which conditions contenders are measured; the same for all of them.

    Attributes:
      rounds: How often each contender is measured.
      min_seconds: Short work is repeated until a measurement lasts about this long.
      quiet_load: The machine counts as idle while others use at most this many cores.
      patience: Longest wait for an idle machine, in seconds over all rounds together.
      set_up_limit: Longest that a contender may take to set itself up (s).
      run_limit: Longest that one measurement may take (s).
      seed: Of the order within rounds.
    """

    rounds: int = 7
    min_seconds: float = 0.5
    quiet_load: float = 0.15
    patience: float = 60.0
    set_up_limit: float = 300.0
    run_limit: float = 120.0
    seed: int = 0


@dataclasses.dataclass
class Measurement:
    """What was measured of one contender.

    Attributes:
      seconds: Time of one repetition, for each round.
      other_load: Cores that other processes used meanwhile, for each round.
      repetitions: How often the work was repeated within a round.
      ready: What the worker said when it was set up, `units` among it: the units of work of a
        repetition by name.
      set_up_seconds: How long the set-up took, compilation included.
      peak_rss_mib: The largest resident set after set-up; NaN where the contender did not tell.
      steady_rss_mib: The resident set at the end, between two repetitions of the work; as above.
    """

    seconds: list[float]
    other_load: list[float]
    repetitions: int
    ready: dict[str, Any]
    set_up_seconds: float
    peak_rss_mib: float = float("nan")
    steady_rss_mib: float = float("nan")

    def rates(self, unit: str) -> list[float]:
        """Returns units of work in a second, for each round."""
        return [self.ready["units"][unit] / seconds for seconds in self.seconds]


def paired_ratios(measured: Measurement, reference: Measurement, unit: str) -> list[float]:
    """Computes the speed-up of `measured` over `reference`, round by round."""
    pairs = zip(measured.rates(unit), reference.rates(unit), strict=True)
    return [ours / theirs for ours, theirs in pairs]


def measure(
    contenders: Iterable[Contender],
    conditions: Conditions,
    *,
    directory: Path,
    environment: Mapping[str, str] | None = None,
    log: Any = print,
) -> tuple[dict[str, Measurement], dict[str, str]]:
    """Measures contenders against one another.

    Args:
      contenders: What to measure; set up in this order.
      conditions: How.
      directory: Where the workers' standard error is kept.
      environment: Variables that all contenders get.
      log: Takes lines about progress.

    Returns:
      (measurements, failures): by name; a failure is one line saying why there is no measurement.
    """
    workers: dict[str, Worker] = {}
    results: dict[str, Measurement] = {}
    failures: dict[str, str] = {}
    try:
        for contender in contenders:
            # One after the other: autotuning, which measures, would measure the others, too.
            worker = workers[contender.name] = Worker(contender, directory, environment or {})
            try:
                results[worker.name] = _wait(worker, conditions)
                log(f"  {worker.name}: ready after {worker.age():.0f} s")
            except WorkerError as error:
                failures[worker.name] = str(error)
                log(f"  {worker.name}: {error}")
        _choose_repetitions(workers, results, failures, conditions)
        _run_rounds(workers, results, failures, conditions)
        for name, result in results.items():
            try:
                memory = workers[name].quit(conditions.run_limit)
                result.peak_rss_mib = memory["peak_rss_mib"]
                result.steady_rss_mib = memory["steady_rss_mib"]
            except WorkerError as error:  # its times stand, and those of the others
                log(f"  {name}: peak memory unknown: {error}")
    finally:
        for worker in workers.values():
            worker.close()
    return results, failures


class Worker:
    """The process of one contender."""

    def __init__(self, contender: Contender, directory: Path, environment: Mapping[str, str]):
        """Starts the process; its standard error goes to a file in `directory`."""
        self.name = contender.name
        self._start = time.monotonic()
        directory.mkdir(parents=True, exist_ok=True)
        file_name = "".join(letter if letter.isalnum() else "_" for letter in contender.name)
        self._errors = directory / f"{file_name}.stderr"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                contender.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **environment, **contender.environment},
            )

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def age(self) -> float:
        """Returns the seconds since the start."""
        return time.monotonic() - self._start

    def read(self, limit: float) -> dict[str, Any]:
        """Waits at most `limit` seconds for the next answer."""
        # Killing the process ends its pipe, and with it a `readline` that waits.
        timer = threading.Timer(limit, self._process.kill)
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            raise WorkerError(self._last_words(limit))
        return json.loads(line)

    def run(self, repetitions: int, limit: float) -> float:
        """Lets the worker compute; returns the seconds that all repetitions took."""
        self._send(f"run {repetitions}")
        return self.read(limit)["seconds"]

    def quit(self, limit: float) -> dict[str, float]:
        """Ends the worker; returns its peak and its last memory (MiB)."""
        self._send("quit")
        return self.read(limit)

    def close(self) -> None:
        """Makes sure that the process is gone."""
        try:
            self._process.stdin.close()
            self._process.wait(timeout=10)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _send(self, line: str) -> None:
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(self._last_words(0)) from None

    def _last_words(self, limit: float) -> str:
        code = self._process.wait()
        if code == -9:
            return f"killed: no answer within {limit:.0f} s, or out of memory"
        lines = [line for line in self._errors.read_text().splitlines() if line.strip()]
        return f"ended with exit code {code}: {lines[-1].strip() if lines else 'no message'}"


def _wait(worker: Worker, conditions: Conditions) -> Measurement:
    ready = worker.read(max(1.0, conditions.set_up_limit - worker.age()))
    return Measurement([], [], 1, ready, worker.age())


def _choose_repetitions(
    workers: Mapping[str, Worker],
    results: dict[str, Measurement],
    failures: dict[str, str],
    conditions: Conditions,
) -> None:
    for name in list(results):
        try:
            once = workers[name].run(1, conditions.run_limit)
        except WorkerError as error:
            failures[name] = str(error)
            del results[name]
            continue
        # Short work is repeated until it is long beside the clock's resolution and a pipe's delay.
        results[name].repetitions = max(1, round(conditions.min_seconds / max(once, 1e-6)))


def _run_rounds(
    workers: Mapping[str, Worker],
    results: dict[str, Measurement],
    failures: dict[str, str],
    conditions: Conditions,
) -> None:
    order_of_round = random.Random(conditions.seed)
    patience = conditions.patience
    for _ in range(conditions.rounds):
        names = list(results)
        order_of_round.shuffle(names)
        for name in names:
            patience -= wait_until_quiet(conditions.quiet_load, patience)
            result, worker = results[name], workers[name]
            before = _Usage.now(worker.pid)
            try:
                seconds = worker.run(result.repetitions, conditions.run_limit)
            except WorkerError as error:
                failures[name] = str(error)
                del results[name]
                continue
            result.seconds.append(seconds / result.repetitions)
            result.other_load.append(_Usage.now(worker.pid).others_since(before))


def wait_until_quiet(load: float, patience: float, window: float = 0.25) -> float:
    """Waits until other processes use at most `load` cores, `patience` seconds at most.

    Returns:
      Seconds waited beyond the first look, which is always taken.
    """
    start = time.monotonic()
    while True:
        before = _Usage.now()
        time.sleep(window)
        waited = max(0.0, time.monotonic() - start - 1.5 * window)
        if _Usage.now().others_since(before) <= load or waited >= patience:
            return waited


@dataclasses.dataclass(frozen=True)
class _Usage:
    """CPU seconds used so far: by everybody, and by one process."""

    time: float
    all: float
    own: float

    @classmethod
    def now(cls, pid: int | None = None) -> "_Usage":
        return cls(time.monotonic(), cpu_seconds(), 0.0 if pid is None else cpu_seconds(pid))

    def others_since(self, before: "_Usage") -> float:
        others = (self.all - before.all) - (self.own - before.own)
        return max(0.0, others) / max(self.time - before.time, 1e-9)


def cpu_seconds(pid: int | None = None) -> float:
    """Returns the CPU seconds of the machine or of a process; 0 where the system does not say."""
    try:
        if pid is None:
            user, nice, system, _, _, interrupts, soft, stolen = _first_fields("/proc/stat", 1, 8)
            ticks = user + nice + system + interrupts + soft + stolen
        else:
            # The command's name, in parentheses, may hold blanks.
            text = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks = int(text[11]) + int(text[12])
    except OSError:  # no /proc, as on macOS: nobody else is then seen to use the machine
        return 0.0
    return ticks / _CLOCK_TICKS


def _first_fields(path: str, start: int, count: int) -> Sequence[int]:
    with open(path) as file:
        return [int(field) for field in file.readline().split()[start : start + count]]


def summary(values: Sequence[float]) -> dict[str, float]:
    """Returns median, least and largest of some values."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}
