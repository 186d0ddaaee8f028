"""What a sweep's command line asks for, with runs that are scripts and leave what trainings do."""

import importlib.util
import json
import sys

import pytest

from attention_jax.commands import cli, sweep_request
from attention_jax.sweeps.grid import GridRun

CONFIG = ("--config=configs/quickstart.py:smoke", "--config.evaluation.splits=()")
RATE = "optimizer.learning_rate"
# A run whose loss is its own learning rate, or that fails.
SCRIPT = """
import json, pathlib, sys
workdir, config = pathlib.Path({workdir!r}), json.loads({config!r})
rate = config["optimizer"]["learning_rate"]
if {fails}:
    sys.exit("error: it cannot")
how = {{"test": {{"command": "python -m launch.evaluate {evaluate}"}}}}
run = {{"seed": 0, "finished": "2026", "evaluations": how}}
files = {{"config": config, "run": run, "results": {{}}}}
for name, value in files.items():
    (workdir / name).with_suffix(".json").write_text(json.dumps(value))
line = {{"step": 1, "split": "validation", "nll": rate}}
(workdir / "metrics.jsonl").write_text(json.dumps(line))
"""


@pytest.fixture
def ask(repository, monkeypatch, tmp_path, capsys):
    """Carries out a command line; returns the code, the output, and the lines of progress."""
    monkeypatch.chdir(repository)

    def ask_(fails="False", **values):
        def commands(run):
            config = json.dumps(run.resolved())
            script = SCRIPT.format(
                workdir=str(run.workdir), config=config, fails=fails,
                evaluate=" ".join(run.grid.evaluate),
            )  # fmt: skip
            return [[sys.executable, "-c", script]]

        usual = {"grid": [], "setting": [], "search": [], "run": [], "seeds": 1, "jobs": 1}
        values = {**usual, "workdir": str(tmp_path / "sweep"), **values}
        monkeypatch.setattr(GridRun, "commands", commands)
        monkeypatch.setattr(cli, "value", values.get)
        monkeypatch.setattr(cli, "require", values.__getitem__)
        monkeypatch.setattr(sys, "argv", ["sweep", *CONFIG])
        code = sweep_request.carried_out()
        out, err = capsys.readouterr()
        return code, out, err.splitlines()

    return ask_


def test_a_run_that_fails_does_not_stop_the_others(ask):
    grid = [f"{RATE}=0.1,0.2,0.3"]
    code, out, lines = ask(grid=grid, fails="rate == 0.2")
    assert code == 1
    (failed,) = [line for line in lines if "FAILED" in line]
    assert failed.startswith("learning_rate=0.2/seed0: FAILED, exit code 1: error: it cannot")
    assert lines[-1] == "failed: learning_rate=0.2/seed0; the same command tries them again"
    assert "| learning_rate=0.3 | 1 |" in out and "learning_rate=0.2" not in out
    code, out, lines = ask(grid=grid)
    assert code == 0 and lines[0] == "3 runs, 2 finished; 1 at a time"
    assert "| learning_rate=0.2 | 1 |" in out
    assert "Best by validation nll ↓: learning_rate=0.1, 0.1000, in" in out


def test_an_evaluation_that_is_added_is_made_of_finished_runs(ask):
    grid = [f"{RATE}=0.1,0.2"]
    ask(grid=grid)
    lines = ask(grid=grid, evaluate="--split=test --heads", list=True)[1].splitlines()
    assert lines[0].endswith("learning_rate=0.1/seed0: finished, to be evaluated again")
    code, _, lines = ask(grid=grid, evaluate="--split=test --heads")
    assert code == 0 and lines[0] == "2 runs, 0 finished; 1 at a time"
    assert len([line for line in lines if ": finished in" in line]) == 2
    for evaluate in ("--split=test --heads", None):  # None is what the sweep knows
        assert ask(grid=grid, evaluate=evaluate)[2] == ["All 2 runs are finished."]


@pytest.mark.skipif(
    importlib.util.find_spec("optuna") is None, reason="needs optuna, the extra `sweep`"
)
def test_a_search_follows_the_grid_and_is_compared_with_it(ask):
    space = [f"{RATE}=0.0001..0.0002"]  # which is better than the config's own
    code, out, lines = ask(search=space, trials=2, jobs=2)
    assert code == 0
    finished = [line.split(":")[0] for line in lines if ": finished in" in line]
    assert finished[0] == "config/seed0" and sorted(finished[1:]) == [
        "trial_0/seed0", "trial_1/seed0",
    ]  # fmt: skip
    assert out.startswith("| cell |") and "| config | 1 |" in out and "| trial_1 | 1 |" in out
    assert "Best by validation nll ↓: trial_" in out
    code, out, lines = ask(search=space, trials=3)
    assert [line.split(":")[0] for line in lines if ": finished in" in line] == ["trial_2/seed0"]
    assert "| trial_2 | 1 |" in out
