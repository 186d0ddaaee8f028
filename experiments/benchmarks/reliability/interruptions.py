"""Interruptions: processes that are killed or told to stop, and resumed by the same command.

A scenario yields for each of its trials what was lost, or None.
"""

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from experiments.benchmarks.reliability.bench import (
    HEARTBEAT_SECONDS,
    STEPS,
    Bench,
    difference,
    saved_steps,
    validation_losses,
)
from experiments.benchmarks.reliability.sabotage import Fault

Trials = Iterator[str | None]

_SAVED = "is saved, the same command continues"
_GONE = "another process of this run is gone"
_TOLERANCE = 1e-6


def killed(bench: Bench) -> Trials:
    """Kills one training again and again: while it starts, trains, saves and evaluates.

    A trial is a kill that happened. The last one is judged by the end of the run as well, which
    depends on all of them; so is one that comes too late, when the run has already ended, and those
    after it are of another run.
    """
    rng = bench.random("killed")
    workdir = bench.workdir("killed")
    kills = 2 if bench.is_short else 20
    steps = sorted(rng.choice([0, STEPS, *[rng.randrange(1, STEPS)] * 6]) for _ in range(kills))
    # Seconds in which the kill falls, at random: during the start, or the evaluation at the end.
    longest = {0: 6.0, STEPS: 1.5}
    for number, step in enumerate(steps):
        fault = Fault((signal.SIGKILL,), step=step, seconds=rng.uniform(0, longest.get(step, 0.1)))
        ended = bench.train(workdir, fault=fault)
        # With so much time it may be over before it is killed, and nothing was tried then.
        is_over = ended.code == 0 and step in longest
        if is_over:
            problem = difference(workdir, bench.uninterrupted)
            workdir = bench.workdir("killed")
        else:
            problem = ended.unless(-signal.SIGKILL)
        if number == kills - 1:
            problem = problem or bench.train(workdir).unless(0)
            problem = problem or difference(workdir, bench.uninterrupted)
        if problem or not is_over:
            yield problem and f"killed after step {step}: {problem}"


def told_to_stop(bench: Bench) -> Trials:
    """SIGTERM and Ctrl-C: the step is saved, and the code says why the process has ended."""
    codes = {signal.SIGTERM: 75, signal.SIGINT: 130}
    for number in (signal.SIGTERM,) if bench.is_short else codes:
        code = codes[number]
        workdir = bench.workdir("told_to_stop")
        problem = bench.train(workdir, fault=Fault((number,), step=20)).unless(code, _SAVED)
        problem = problem or (None if max(saved_steps(workdir)) >= 20 else "the step is not saved")
        problem = problem or _continued(bench, workdir)
        yield problem or difference(workdir, bench.uninterrupted)


def told_twice(bench: Bench) -> Trials:
    """A second SIGTERM while the first one's checkpoint is written: nobody waits for it."""
    for step in (20,) if bench.is_short else (15, 20, 33, 41, 50):
        workdir = bench.workdir("told_twice")
        fault = Fault((signal.SIGTERM,) * 2, step=step, while_saving=True)
        problem = bench.train(workdir, fault=fault).unless(75)
        problem = problem or bench.train(workdir).unless(0)
        yield problem or difference(workdir, bench.uninterrupted)


def one_of_two_killed(bench: Bench) -> Trials:
    """Kills one of two processes: the other one notices in time, and says to try again."""
    for step, process in ((30, 1), (17, 0), (44, 1), (52, 0)):
        workdir, mark = bench.workdir("one_of_two_killed"), bench.folder / "mark"
        fault = Fault((signal.SIGKILL,), step=step, process=process, mark=str(mark))
        ended = bench.train(workdir, fault=fault, processes=2)
        problem = ended.unless(75) or _too_late(mark)
        log = workdir / "logs" / f"process_{1 - process}.log"
        if not problem and _GONE not in log.read_text(errors="replace"):
            problem = f"the other process did not say {_GONE!r}"
        problem = problem or bench.train(workdir, processes=2).unless(0)
        yield problem or difference(workdir, bench.uninterrupted_pair)
        mark.unlink(missing_ok=True)


def supervised(bench: Bench) -> Trials:
    """The same under the supervisor, which needs nobody to try again."""
    for process in (1,) if bench.is_short else (1, 0):
        workdir, mark = bench.workdir("supervised"), bench.folder / "mark"
        fault = Fault((signal.SIGKILL,), step=30, process=process, mark=str(mark))
        ended = bench.train(workdir, fault=fault, processes=2, supervised=True)
        problem = ended.unless(0, "supervise: exit code 75", "started again")
        yield problem or difference(workdir, bench.uninterrupted_pair)
        mark.unlink(missing_ok=True)


def one_of_two_told_to_stop(bench: Bench) -> Trials:
    """SIGTERM to one of two processes: both save the same step and leave."""
    for process in (1,) if bench.is_short else (1, 0):
        workdir = bench.workdir("one_of_two_told")
        fault = Fault((signal.SIGTERM,), step=20, process=process)
        problem = bench.train(workdir, fault=fault, processes=2).unless(75, _SAVED)
        shutil.copytree(workdir, bench.workdir("saved_by_two"))
        problem = problem or bench.train(workdir, processes=2).unless(0)
        problem = problem or difference(workdir, bench.uninterrupted_pair)
        yield problem


def other_number_of_processes(bench: Bench) -> Trials:
    """Resumes with one process what two have saved, and the other way round."""
    by_two = bench.folder / "saved_by_two"
    if not by_two.exists():
        bench.train(by_two, fault=Fault((signal.SIGTERM,), step=20, process=1), processes=2)
    for workdir, processes in ((by_two, 1), (bench.copy(bench.cut_off, "by_one"), 2)):
        problem = _continued(bench, workdir, processes)
        yield problem or _distance(workdir, bench.uninterrupted)


def _continued(bench: Bench, workdir: Path, processes: int = 1) -> str | None:
    """Trains to the end, and returns what was wrong with that."""
    words = f"continuing after step {max(saved_steps(workdir))}"
    return bench.train(workdir, processes=processes).unless(0, words)


def _distance(workdir: Path, expected: Path) -> str | None:
    """Returns by how much the last validation loss differs, if by too much."""
    found, wanted = validation_losses(workdir), validation_losses(expected)
    if found.keys() != wanted.keys():
        return f"validated at steps {sorted(found)}, not {sorted(wanted)}"
    worst = max(abs(found[step] - wanted[step]) for step in wanted)
    return f"validation losses differ by {worst:.1e}" if worst > _TOLERANCE else None


def _too_late(mark: Path) -> str | None:
    """Returns a problem if the other process took too long to notice that one was killed."""
    seconds = time.time() - mark.stat().st_mtime
    limit = 2 * HEARTBEAT_SECONDS
    return f"it took {seconds:.0f} s, at most {limit} are allowed" if seconds > limit else None
