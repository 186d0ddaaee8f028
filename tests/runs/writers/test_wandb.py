"""Weights & Biases: what its client is told, and its offline mode where it is installed."""

import importlib.util
import types

import pytest

from attention_jax.runs.writers import FAILED, FINISHED, INTERRUPTED, Writer, wandb


class FakeRun:
    """Remembers what a run of wandb is told."""

    def __init__(self, **arguments):
        self.arguments = arguments
        self.id = arguments["id"] or "new"
        self.offline, self.url = False, f"https://service/{self.id}"
        self.told = []

    def define_metric(self, name, step_metric):
        self.told.append(("define", name, step_metric))

    def log(self, values):
        self.told.append(values)

    def mark_preempting(self):
        self.told.append("preempting")

    def finish(self, exit_code):
        self.told.append(exit_code)


@pytest.fixture
def runs(install):
    """The fake runs that were started."""
    started = []

    def init(**arguments):
        started.append(FakeRun(**arguments))
        return started[-1]

    install("wandb", init=init, Settings=types.SimpleNamespace)
    return started


def test_a_run_is_told_config_steps_and_values(runs, opening, tmp_path):
    writer = wandb.open_writer(opening())
    writer.write(5, "train", {"loss": 1.5, "seconds/data": 0.25})
    writer.close(FINISHED)
    (run,) = runs
    assert isinstance(writer, Writer)
    assert (writer.run_id, writer.place) == ("new", "https://service/new")
    assert run.arguments["dir"] == str(tmp_path) and run.arguments["config"]["seed"] == 3
    assert run.told == [
        ("define", "*", "step"),
        {"step": 5, "train/loss": 1.5, "train/seconds/data": 0.25},
        0,
    ]


def test_a_continued_training_continues_the_run(runs, opening):
    writer = wandb.open_writer(opening(step=5, run_id="abc"))
    assert writer.run_id == "abc"
    assert (runs[0].arguments["id"], runs[0].arguments["resume"]) == ("abc", "allow")


@pytest.mark.parametrize(
    ("ending", "told"), [(FINISHED, [0]), (FAILED, [1]), (INTERRUPTED, ["preempting", 1])]
)
def test_a_run_is_told_how_training_ended(runs, opening, ending, told):
    wandb.open_writer(opening()).close(ending)
    assert runs[0].told[1:] == told


@pytest.mark.filterwarnings("ignore")  # of a package that the tests do not depend on
@pytest.mark.skipif(
    getattr(importlib.util.find_spec("wandb"), "origin", None) is None,
    reason="wandb is not installed",
)
def test_offline_runs_of_one_training_have_one_id(opening, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    first = wandb.open_writer(opening())
    first.write(1, "train", {"loss": 1.5})
    first.close(INTERRUPTED)
    second = wandb.open_writer(opening(step=1, run_id=first.run_id))
    second.write(2, "validation", {"nll": 1.25})
    second.close(FINISHED)
    assert first.place == second.place == str(tmp_path / "wandb")
    files = sorted(tmp_path.glob(f"wandb/offline-run-*/run-{first.run_id}.wandb"))
    assert [b"train/loss" in path.read_bytes() for path in files] == [True, False]
    assert [b"validation/nll" in path.read_bytes() for path in files] == [False, True]
