"""Whole processes in turns: what is timed, what is told of those that fail."""

import signal
import sys

import pytest

from experiments.benchmarks.speed.harness import Conditions, WorkerError
from experiments.benchmarks.speed.starts import Start, StartPlan, measure_starts, time_start

QUICK = Conditions(rounds=3, patience=0.0, run_limit=30.0)


def python(program, **fields):
    return Start((sys.executable, "-c", program), **fields)


def test_time_is_taken_at_the_line_and_the_process_is_ended():
    program = "import time\nprint('step 3/3', flush=True)\ntime.sleep(60)"
    timed = time_start(python(program, until="step 3/3"), {}, limit=30.0)
    assert 0 < timed.seconds < 20
    assert timed.peak_rss_mib > 1


def test_time_is_taken_at_the_end_of_what_reads_its_input():
    program = "import os, sys\nprint(sys.stdin.read(), os.environ['SHARED'], os.environ['OWN'])"
    start = python(program, environment={"OWN": "own"}, said="a line", facts=lambda x: {"said": x})
    timed = time_start(start, {"SHARED": "shared"}, limit=30.0)
    assert timed.facts["said"] == ["a line shared own"]


def test_a_process_that_is_told_to_stop_may_say_what_it_has_to():
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('saved'), sys.exit(75)))\n"
        "print('ready', flush=True)\nsignal.pause()"
    )
    start = python(program, until="ready", stop=signal.SIGTERM, facts=lambda x: {"last": x[-1]})
    assert time_start(start, {}, limit=30.0).facts == {"last": "saved"}


def test_failures_are_one_line():
    with pytest.raises(WorkerError, match="^ended with exit code 1: ValueError: broken$"):
        time_start(python("raise ValueError('broken')"), {}, limit=30.0)
    with pytest.raises(WorkerError, match="^ended with exit code 0: no message$"):
        time_start(python("", until="step"), {}, limit=30.0)
    with pytest.raises(WorkerError, match="^killed: not there within 0 s$"):
        time_start(python("import time\ntime.sleep(60)", until="step"), {}, limit=0.2)


def test_contenders_take_turns_each_after_what_it_needs(tmp_path):
    diary = tmp_path / "diary"

    def noting(name):
        program = f"open({str(diary)!r}, 'a').write({name!r})"
        return lambda folder: python(program)

    plans = {
        "one": StartPlan(noting("1"), [noting("a"), noting("b")], {"version": "1"}),
        "two": StartPlan(noting("2")),
        "broken": StartPlan(noting("3"), [lambda folder: python("raise ValueError('broken')")]),
    }
    measured, failures = measure_starts(plans, QUICK, {}, log=lambda line: None)
    written = diary.read_text()
    assert written[:2] == "ab" and sorted(written[2:]) == sorted("12" * 3)
    assert {len(each.seconds) for each in measured.values()} == {3}
    assert measured["one"].ready == {"units": {"starts": 1}, "version": "1"}
    assert failures == {"broken": "ended with exit code 1: ValueError: broken"}


def test_every_start_has_a_folder_that_is_new(tmp_path):
    folders = []

    def start(folder):
        assert not any(folder.iterdir())
        folders.append(folder)
        return python(f"open({str(folder / 'full')!r}, 'w')")

    measure_starts({"one": StartPlan(start)}, QUICK, {}, log=lambda line: None)
    assert len(set(folders)) == 3 and not any(folder.exists() for folder in folders)
