"""The fault drill in its short form: nothing is lost."""

import os
import random
import re
import signal
import subprocess
import sys
import types

import pytest

from experiments.benchmarks.reliability import interruptions, report
from experiments.benchmarks.reliability.bench import STEPS, Ended
from experiments.benchmarks.reliability.drill import _ONLY_IN_FULL, SCENARIOS

pytestmark = [pytest.mark.early, pytest.mark.timeout(1600)]  # it starts dozens of processes


@pytest.fixture(scope="module")
def short(repository):
    """The short drill."""
    return subprocess.run(
        [sys.executable, "-m", "experiments.benchmarks.reliability.drill", "--short"],
        cwd=repository, env=dict(os.environ), capture_output=True, text=True, timeout=1500,
    )  # fmt: skip


def test_nothing_is_lost(short):
    assert short.returncode == 0, short.stdout + short.stderr
    assert re.search(r"^\d+ trials, 0 lost$", short.stdout, re.MULTILINE)


def test_every_scenario_was_tried(short):
    tried = {title for title, _ in SCENARIOS.values() if f"\n{title} " in f"\n{short.stdout}"}
    left_out = {title for title, _ in SCENARIOS.values()} - tried
    assert left_out == {SCENARIOS[name][0] for name in _ONLY_IN_FULL}
    assert "lost:" not in short.stdout


@pytest.mark.parametrize("found", [None, "other parameters"])
@pytest.mark.parametrize("late", [0, STEPS])
def test_only_trainings_that_were_killed_count_as_kills(late, found, monkeypatch):
    """One that ends before it is killed is judged, and another is begun."""
    faults, is_complete = [], False

    def workdir(name):
        nonlocal is_complete
        is_complete = False
        return name

    def train(path, fault=None):
        nonlocal is_complete
        if fault is not None:
            faults.append(fault)
        is_complete = is_complete or fault is None or fault.step == late
        return Ended(0 if is_complete else -signal.SIGKILL, "")

    bench = types.SimpleNamespace(
        is_short=False, random=lambda name: random.Random(f"0 {name}"), workdir=workdir,
        train=train, uninterrupted="uninterrupted",
    )  # fmt: skip
    monkeypatch.setattr(interruptions, "difference", lambda run, other: found)
    trials = list(interruptions.killed(bench))
    too_late = [fault.step for fault in faults if fault.step == late]
    assert len(faults) == 20 and too_late
    last = faults[-1].step
    if found is None:
        assert trials == [None] * (20 - len(too_late))
    else:
        judged = [*too_late, *([last] if last != late else [])]
        lost = [f"killed after step {step}: other parameters" for step in judged]
        assert [trial for trial in trials if trial] == lost


def test_a_loss_is_shown_and_recorded(tmp_path):
    outcomes = [
        report.Outcome("disk full", 3, ("exit code 1, not 2: oops",), 12.0),
        report.Outcome("read-only directory", 0, (), 0.1, "there is no mount"),
    ]
    assert "    lost: exit code 1, not 2: oops" in report.line(outcomes[0])
    facts = report.record(outcomes, is_short=False, seed=0)
    assert (facts["trials"], facts["losses"]) == (3, 1)
    paths = report.save(tmp_path, outcomes, facts)
    assert [path.name for path in paths] == ["drill.json", "drill.md"]
    page = paths[1].read_text()
    assert "| disk full | 3 | 1 | 12s |" in page and "oops" in page
    assert "| read-only directory | skipped |  | there is no mount |" in page


def test_an_end_is_judged_by_code_and_words():
    assert Ended(75, "step 3 is saved\n").unless(75, "is saved") is None
    assert Ended(75, "step 3\n").unless(75, "is saved") == "did not say 'is saved': step 3"
    assert Ended(1, "").unless(75) == "exit code 1, not 75: nothing was said"
    assert Ended(2, "error: a\n").is_one_line
    assert not Ended(2, "Traceback\nerror: a\n").is_one_line
    assert not Ended(2, "error: a\nerror: b\n").is_one_line
