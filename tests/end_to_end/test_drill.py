"""The fault drill in its short form: nothing is lost."""

import os
import random
import re
import signal
import subprocess
import sys
import types

import pytest

from experiments.reliability import interruptions, report
from experiments.reliability.bench import STEPS, Ended
from experiments.reliability.drill import SCENARIOS

pytestmark = pytest.mark.timeout(1600)  # it starts dozens of processes


@pytest.fixture(scope="module")
def short(repository):
    """The short drill."""
    return subprocess.run(
        [sys.executable, "-m", "experiments.reliability.drill", "--short"],
        cwd=repository, env=dict(os.environ), capture_output=True, text=True, timeout=1500,
    )  # fmt: skip


def test_nothing_is_lost(short):
    assert short.returncode == 0, short.stdout + short.stderr
    assert re.search(r"^\d+ trials, 0 lost$", short.stdout, re.MULTILINE)


def test_every_scenario_was_tried(short):
    tried = {title for title, _ in SCENARIOS.values() if f"\n{title} " in f"\n{short.stdout}"}
    left_out = {title for title, _ in SCENARIOS.values()} - tried
    assert left_out == {SCENARIOS["one_of_two_killed"][0]}
    assert "lost:" not in short.stdout


@pytest.mark.parametrize("found", [None, "other parameters"])
def test_only_trainings_that_were_killed_count_as_kills(found, monkeypatch):
    faults = []

    def train(workdir, fault=None):
        if fault is None:
            return Ended(0, "")
        faults.append(fault)
        return Ended(0 if fault.step == STEPS else -signal.SIGKILL, "")

    bench = types.SimpleNamespace(
        is_short=False, random=lambda name: random.Random(f"0 {name}"), workdir=lambda name: name,
        train=train, uninterrupted="uninterrupted",
    )  # fmt: skip
    monkeypatch.setattr(interruptions, "difference", lambda run, other: found)
    trials = list(interruptions.killed(bench))
    too_late = sum(fault.step == STEPS for fault in faults)
    assert len(faults) == 20 and too_late
    assert len(trials) == 20 - too_late + (found is not None)
    assert [trial for trial in trials if trial] == (
        [] if found is None else [f"killed after step {STEPS}: other parameters"]
    )


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
