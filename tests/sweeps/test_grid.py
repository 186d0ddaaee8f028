import json
import os
import shlex
import signal
import sys
import threading
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from attention_jax.errors import ConfigError, RunDirectoryError
from attention_jax.runs.progress import StatusLine
from attention_jax.sweeps import runner
from attention_jax.sweeps.grid import Grid, GridRun
from attention_jax.sweeps.kept_files import keep_lines, kept_lines
from attention_jax.sweeps.records import FILES


def make_grid(**changes):
    fields = {
        "name": "trial",
        "config": "configs/bahdanau2015.py:smoke",
        "cells": {"a": {"model.attention.name": "scaled_dot"}, "b": {}},
        "seeds": (0, 1),
        "overrides": {"training.num_steps": 7},
        "after": ("experiments.other",),
        "kept": {"extra.gz": None},
    }
    return Grid(**{**fields, **changes})


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def make_runs(folder: Path, **changes) -> list[GridRun]:
    return make_grid(**changes).runs(folder / "runs", folder / "out")


def fill(run: GridRun, config=None, **facts) -> None:
    """Leaves in the directory of a run what training would."""
    run.workdir.mkdir(parents=True, exist_ok=True)
    config = run.resolved() if config is None else config
    (run.workdir / "config.json").write_text(json.dumps(config))
    (run.workdir / "run.json").write_text(json.dumps({"seed": run.seed, **facts}))
    (run.workdir / "results.json").write_text(json.dumps({"test": {"bleu": 12.5}}))
    keep_lines(run.workdir / "extra.gz", ["extra", "ordinary"])


def test_runs_compare_all_cells_before_the_second_seed(tmp_path):
    runs = make_runs(tmp_path)
    assert [run.name for run in runs] == ["a/seed0", "b/seed0", "a/seed1", "b/seed1"]


def test_a_run_that_evaluates_no_split_has_a_record_without_results(tmp_path):
    first, second, *_ = make_runs(tmp_path, overrides={"evaluation.splits": ()})
    for run in (first, second):
        fill(run)
        (run.workdir / "results.json").unlink()
    first.keep()
    assert first.is_finished() and first.results() == {}
    config = second.resolved()
    fill(second, {**config, "evaluation": {**config["evaluation"], "splits": ["test"]}})
    (second.workdir / "results.json").unlink()
    with pytest.raises(RunDirectoryError, match="expected a record, found no results.json in it"):
        second.keep()


def test_runs_have_directories_of_their_own(tmp_path):
    runs = make_runs(tmp_path)
    assert runs[2].workdir == tmp_path / "runs" / "trial" / "a" / "seed1"
    assert {run.records for run in runs} == {tmp_path / "out" / "trial" / "records.zip"}
    assert len({path for run in runs for path in (run.workdir, run.log)}) == 8


def test_commands_train_and_go_on(tmp_path):
    train, after = make_runs(tmp_path)[2].commands()
    assert train[:3] == [sys.executable, "-m", "launch.train"]
    assert {
        "--config=configs/bahdanau2015.py:smoke",
        "--config.training.num_steps=7",
        "--config.model.attention.name=scaled_dot",
        "--config.seed=1",
    } <= set(train)
    assert after == [sys.executable, "-m", "experiments.other", train[4]]
    assert train[4].startswith("--workdir=")


def test_a_finished_run_is_evaluated_again_where_other_options_are_asked_for(tmp_path):
    asked = ["--split=test", "--alignment=gold links"]
    run, evaluated, *_ = make_runs(tmp_path, evaluate=asked)
    assert not run.is_evaluated() and len(run.commands()) == 3
    command = shlex.join(["python", "-m", "launch.evaluate", "--workdir=x", *asked])
    fill(run)
    fill(evaluated, evaluations={"test": {"command": command}, "validation": {}})
    for each in (run, evaluated):
        each.keep()
    assert run.is_finished() and not run.is_evaluated() and evaluated.is_evaluated()
    assert [command[2] for command in run.commands()] == ["launch.evaluate", "experiments.other"]
    plain, *_ = make_runs(tmp_path)
    assert plain.is_evaluated()


def test_resolved_applies_overrides_of_grid_cell_and_seed(tmp_path):
    config = make_runs(tmp_path)[2].resolved()
    assert config["training"]["num_steps"] == 7
    assert config["model"]["attention"]["name"] == "scaled_dot"
    assert config["seed"] == 1


def test_resolved_adds_and_leaves_out_objectives(tmp_path):
    objectives = {"coverage_loss.weight": 0.5, "coverage_penalty": True, "nll": False}
    overrides = {f"objectives.{name}": value for name, value in objectives.items()}
    found = make_runs(tmp_path, overrides=overrides)[0].resolved()["objectives"]
    assert set(found) == {"coverage_loss", "coverage_penalty"}
    assert found["coverage_loss"]["weight"] == 0.5


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ({"training.num_stepz": 7}, "training.num_stepz: no such field; did you mean 'num_steps'"),
        ({"trainig.num_steps": 7}, "config.trainig: no such field; did you mean 'training'"),
        ({"training.num_steps": "many"}, "num_steps: expected int, found 'many'"),
        ({"training.num_steps": 0}, "config.training.num_steps: expected at least 1, found 0"),
        ({"seed.more": 1}, "config.seed.more: no such field; config.seed is a single value"),
    ],
)
def test_resolved_refuses_overrides_that_do_not_fit(tmp_path, override, words):
    (run, *_) = make_runs(tmp_path, overrides=override)
    with pytest.raises(ConfigError, match=words):
        run.resolved()


def test_keep_makes_a_record_that_finishes_the_run(tmp_path):
    run, other, *_ = make_runs(tmp_path)
    fill(run, finished="now")
    assert (run.status(), other.status()) == ("trained", "not started")
    run.keep()
    assert run.is_finished() and not other.is_finished()
    assert run.status() == "finished"
    assert run.results() == {"test": {"bleu": 12.5}}
    assert run.scores() == {"bleu": 12.5} and run.facts()["finished"] == "now"
    assert run.lines("extra.gz") == ["extra", "ordinary"]
    assert run.record().config == run.resolved()
    assert run.record().overrides == run.overrides
    with pytest.raises(RunDirectoryError, match=r"expected none.npz of a/seed0, found nothing"):
        run.arrays("none.npz")
    with pytest.raises(RunDirectoryError, match="expected a record of b/seed0, found none"):
        other.facts()


def test_a_record_has_the_arrays_and_curves_that_are_asked_for(tmp_path):
    run = make_runs(tmp_path, kept={"counts.npz": ("a", "z")}, curves=("nll", "bleu"))[0]
    fill(run)
    np.savez(run.workdir / "counts.npz", a=np.arange(6.0).reshape(3, 2), b=np.ones(2))
    logged = [
        {"step": step, "split": "train", "nll": nll, "loss": 0.0}
        for step, nll in ((1, 3.0), (2, 2.5), (2, 2.0))
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in logged)
    (run.workdir / "metrics.jsonl").write_text(f'{text}{{"step": 3, "spl')
    run.keep()
    (found,) = run.arrays("counts.npz").items()
    assert found[0] == "a" and found[1].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert run.record().curves == {"nll": {"train": [[1, 2], [3.0, 2.0]]}}


def test_what_all_runs_share_is_kept_once(tmp_path):
    runs = make_runs(tmp_path, kept={}, shared=("extra.gz",))
    for run in runs[:2]:
        fill(run)
        run.keep()
    assert runs[0].shared("extra.gz") == tmp_path / "out" / "trial" / "extra.gz"
    assert kept_lines(runs[1].shared("extra.gz")) == ["extra", "ordinary"]
    assert sorted(os.listdir(tmp_path / "out" / "trial")) == ["extra.gz", "records.zip"]


@pytest.mark.parametrize("missing", [*FILES, "extra.gz"])
def test_keep_makes_no_part_of_a_record(tmp_path, missing):
    run, *_ = make_runs(tmp_path)
    fill(run)
    (run.workdir / missing).unlink()
    with pytest.raises(RunDirectoryError, match=missing):
        run.keep()
    assert not run.records.parent.exists()


def test_keep_reports_a_folder_that_cannot_be_written(tmp_path):
    run, *_ = make_runs(tmp_path)
    fill(run)
    (tmp_path / "out").write_text("no folder")
    with pytest.raises(RunDirectoryError, match="cannot be made"):
        run.keep()


def test_a_record_stays_whatever_the_config_would_be_now(tmp_path):
    run, *_ = make_runs(tmp_path)
    config = run.resolved()
    config["training"]["a_field_of_yore"] = config["training"].pop("writers")
    config["model"] = {"name": "of_yore"}
    fill(run, config)
    run.keep()
    assert run.status() == "finished" and run.changes() == ""
    changed = {"training.num_steps": 8, "model.of_tomorrow": 3}
    renamed = make_runs(tmp_path, overrides=changed)[0]
    assert renamed.is_finished() and renamed.scores() == {"bleu": 12.5}
    expected = "model.of_tomorrow None, now 3; training.num_steps 7, now 8"
    assert renamed.changes() == expected
    assert renamed.status() == f"finished, with {expected}"


def test_overrides_that_json_writes_otherwise_are_no_change(tmp_path):
    run = make_runs(tmp_path, overrides={"training.writers": ("wandb",)})[0]
    fill(run)
    run.keep()
    assert run.changes() == ""


def test_results_without_the_test_split_are_one_line(tmp_path):
    run, *_ = make_runs(tmp_path)
    fill(run)
    (run.workdir / "results.json").write_text('{"validation": {}}')
    run.keep()
    with pytest.raises(RunDirectoryError, match="results of the test split for a/seed0, found val"):
        run.scores()


# ---- Running -------------------------------------------------------------------------------------
# The programs are scripts that leave what training would, after doing what the test asks for.


class ScriptedRun(GridRun):
    """A run whose one program is a script."""

    script = ""

    def commands(self):
        prelude = (
            "import os, pathlib, shutil, signal, sys, time\n"
            f"prepared = pathlib.Path({str(self.prepared)!r})\n"
            f"workdir = pathlib.Path({str(self.workdir)!r})\n"
            f"name, shared = {self.name!r}, pathlib.Path({str(self.workdir.parents[1])!r})\n"
            "def done(): shutil.copytree(prepared, workdir, dirs_exist_ok=True)\n"
        )
        return [[sys.executable, "-c", prelude + self.script]]

    @property
    def prepared(self):
        return self.workdir.with_name(f"{self.workdir.name}.prepared")


@pytest.fixture
def scripted(tmp_path):
    def make(script: str) -> list[GridRun]:
        class Scripted(ScriptedRun):
            pass

        Scripted.script = script
        runs = []
        for run in make_runs(tmp_path):
            fill(run)
            scripted_run = Scripted(run.grid, run.cell, run.seed, run.workdir, run.records)
            run.workdir.rename(scripted_run.prepared)
            runs.append(scripted_run)
        return runs

    return make


def test_run_all_makes_every_record(scripted, capsys):
    jax.devices()  # whose threads must not be forked, of which JAX warns
    runs = scripted("print('hello'); done()")
    assert runner.run_all(runs) == 0
    assert all(run.is_finished() for run in runs)
    assert runs[0].log.read_text() == "hello\n"
    shown = capsys.readouterr().out
    assert "b/seed1: finished in" in shown and "bleu 12.50" in shown and "4 of 4" in shown


def test_run_all_skips_what_is_finished(scripted, capsys):
    runs = scripted("print('hello'); done()")
    runner.run_all(runs[:2])
    runs[0].log.unlink()
    assert runner.run_all(runs) == 0
    assert not runs[0].log.exists() and runs[2].log.exists()
    assert "4 runs, 2 finished" in capsys.readouterr().out
    assert runner.run_all(runs) == 0
    assert "All 4 runs are finished" in capsys.readouterr().out


def test_run_all_goes_on_after_a_failure_and_tries_again(scripted, capsys):
    flaky = """
was = workdir / 'was'
if name == 'b/seed0' and not was.exists():
    was.touch()
    sys.exit('error: no')
"""
    runs = scripted(f"{flaky}\ndone()")
    assert runner.run_all(runs) == runner.FAILED
    assert [run.is_finished() for run in runs] == [True, False, True, True]
    shown = capsys.readouterr().out
    assert "b/seed0: FAILED, exit code 1: error: no" in shown
    assert "3 of 4 finished" in shown
    assert runner.run_all(runs) == 0


def test_run_all_reports_a_run_that_leaves_nothing(scripted, capsys):
    runs = scripted("")
    assert runner.run_all(runs[:1]) == runner.FAILED
    assert "a/seed0: FAILED" in capsys.readouterr().out


def test_run_all_does_the_second_command_after_the_first(scripted):
    runs = scripted("(shared / 'trace').open('a').write('first '); done()")[:1]
    first = runs[0].commands()[0]
    then = [*first[:2], first[2].replace("'first '", "'second'")]
    type(runs[0]).commands = lambda self: [first, then]
    assert runner.run_all(runs) == 0
    assert (runs[0].workdir.parents[1] / "trace").read_text() == "first second"


@pytest.mark.parametrize("name", ["runs", "out"])
def test_run_all_starts_nothing_where_its_folders_cannot_be_written(tmp_path, capsys, name):
    (tmp_path / name).symlink_to(tmp_path / "missing" / "folder")
    with pytest.raises(RunDirectoryError, match=f"{name}/trial cannot be written"):
        runner.run_all(make_runs(tmp_path))
    assert "started" not in capsys.readouterr().out


def test_run_all_goes_on_where_a_log_cannot_be_written(scripted, capsys):
    log = "(workdir / 'logs' / 'run.log')"
    runs = scripted(f"done()\nif name == 'b/seed0': {log}.unlink(); {log}.mkdir()")[:3]
    once = type(runs[0]).commands
    type(runs[0]).commands = lambda run: once(run) * 2
    runs[0].log.mkdir(parents=True)
    assert runner.run_all(runs) == runner.FAILED
    assert [run.is_finished() for run in runs] == [False, False, True]
    shown = capsys.readouterr().out
    assert "a/seed0: FAILED, it cannot start" in shown
    assert "b/seed0: FAILED, it cannot go on" in shown


def test_what_was_done_before_tells_no_pace(scripted):
    """Of a run that is continued, or its end would be promised at once."""
    run = scripted("time.sleep(1); done()")[0]
    run.log.parent.mkdir(parents=True)
    run.log.write_text("step 60/100  loss 1.0\n")
    shown = []

    class Recorded(StatusLine):
        def show(self, line):
            shown.append(line)

    assert runner.run_all([run], line=Recorded()) == 0
    assert shown and not any("left" in line for line in shown)


def test_run_all_stops_its_runs_when_something_unforeseen_ends_it(scripted):
    waits = """
def save(number, frame):
    time.sleep(0.3)
    workdir.with_suffix('.saved').touch()
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
(shared / name.replace('/', '_')).touch()
time.sleep(60)
"""
    run = scripted(waits)[0]

    class Closed(StatusLine):
        def say(self, line):
            if "started" in line:
                while not (run.workdir.parents[1] / "a_seed0").exists():
                    time.sleep(0.02)
                raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        runner.run_all([run], line=Closed())
    assert run.workdir.with_suffix(".saved").exists()


MEETING = """
(shared / name.replace('/', '_')).touch()
deadline = time.monotonic() + LIMIT
while len(list(shared.glob('?_seed0'))) < 2 and time.monotonic() < deadline:
    time.sleep(0.02)
(workdir.with_suffix('.met')).write_text(str(len(list(shared.glob('?_seed0')))))
done()
"""


@pytest.mark.parametrize(("jobs", "limit", "met"), [(2, 60, ["2", "2"]), (1, 0.5, ["1", "2"])])
def test_run_all_runs_as_many_at_a_time_as_it_is_told(scripted, jobs, limit, met):
    runs = scripted(MEETING.replace("LIMIT", str(limit)))[:2]
    assert runner.run_all(runs, jobs) == 0
    assert [run.workdir.with_suffix(".met").read_text() for run in runs] == met


# Cores are assigned to a process that runs already.
TOGETHER = """
(shared / name.replace('/', '_')).touch()
deadline = time.monotonic() + 300
while time.monotonic() < deadline and (
    len(list(shared.glob('?_seed0'))) < 2 or len(os.sched_getaffinity(0)) > SHARE
):
    time.sleep(0.02)
print(sorted(os.sched_getaffinity(0)))
done()
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs sched_setaffinity")
def test_run_all_shares_the_cores_out(scripted):
    cores = os.sched_getaffinity(0)
    share = max(len(cores) // 2, 1)
    runs = scripted(TOGETHER.replace("SHARE", str(share)))[:2]
    runner.run_all(runs, jobs=2)
    first, second = (set(json.loads(run.log.read_text())) for run in runs)
    assert first | second <= cores
    assert len(first) == len(second) == share
    assert len(cores) < 2 or not first & second


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_run_all_passes_signals_on_and_waits(scripted, number, code):
    waits = f"""
def save(number, frame):
    time.sleep(0.2 if name == 'a/seed0' else 1.5)
    workdir.with_suffix('.saved').write_text(str(number))
    sys.exit({code})
signal.signal({int(number)}, save)
(shared / name.replace('/', '_')).touch()
time.sleep(60)
"""
    runs = scripted(waits)
    shared = runs[0].workdir.parents[1]

    def stop():
        while len(list(shared.glob("?_seed0"))) < 2:
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    thread = threading.Thread(target=stop)
    thread.start()
    assert runner.run_all(runs, jobs=2) == code
    thread.join()
    saved = [run.workdir.with_suffix(".saved").exists() for run in runs]
    assert saved == [True, True, False, False]
    assert not any(run.log.exists() for run in runs[2:])
    assert signal.getsignal(number) is before


def test_fraction_is_read_from_the_last_step_shown(tmp_path):
    log = tmp_path / "log"
    log.write_text("step 10/100  loss 2\nstep 25/100  loss 1\nchecked\n")
    assert runner._fraction(log) == pytest.approx(0.25 * 0.9)
    log.write_text("")
    assert runner._fraction(log) == 0.0
