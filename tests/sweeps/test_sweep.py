"""Sweeps: which runs there are, what another grid adds to them, and what is refused."""

import json

import pytest

from attention_jax.errors import ConfigError, RunDirectoryError, UserError
from attention_jax.sweeps import archive
from attention_jax.sweeps.archive import Record
from attention_jax.sweeps.sweep import Plan, Sweep, open_sweep

CONFIG = "configs/quickstart.py:smoke"
RATE = "optimizer.learning_rate"
CELLS = {f"learning_rate={rate}": {RATE: rate} for rate in ("0.1", "0.3")}


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def plan(cells=CELLS, seeds=1, config=CONFIG, overrides=(), **more):
    return Plan.asked(config, overrides, cells, seeds, **more)


def names(sweep):
    return [run.name for run in sweep.runs]


def finish(run, config=None):
    """Keeps a record of a run, as if it had been trained."""
    config = run.resolved() if config is None else config
    archive.add(run.records, [Record(run.cell, run.seed, run.overrides, config, {}, {})])


def test_runs_compare_all_cells_before_the_second_seed(tmp_path):
    sweep = open_sweep(str(tmp_path / "s"), plan(seeds=2))
    assert names(sweep) == [f"learning_rate={r}/seed{s}" for s in (0, 1) for r in ("0.1", "0.3")]
    run = sweep.runs[-1]
    assert run.workdir == tmp_path / "s" / "learning_rate=0.3" / "seed1"
    assert run.log.is_relative_to(run.workdir)
    train, *others = run.arguments()
    assert train[-2:] == [f"--config.{RATE}=0.3", "--config.seed=1"] and not others
    assert run.resolved()["optimizer"]["learning_rate"] == 0.3


def test_what_is_known_need_not_be_said_again(tmp_path):
    asked = plan(overrides=[("training.num_steps", "7")], evaluate=["--split=test"])
    before = open_sweep(str(tmp_path), asked)
    found = open_sweep(str(tmp_path), None)
    assert found.plan == before.plan and names(found) == names(before)
    assert "--config.training.num_steps=7" in found.runs[0].arguments()[0]
    assert found.runs[0].arguments()[1][-1] == "--split=test"


def test_another_grid_adds_runs_and_drops_none(tmp_path):
    open_sweep(str(tmp_path), plan(seeds=2))
    more = {"learning_rate=0.3": {RATE: "0.3"}, "learning_rate=1": {RATE: "1"}}
    sweep = open_sweep(str(tmp_path), plan(more, seeds=3))
    known = [f"learning_rate={r}/seed{s}" for s in (0, 1) for r in ("0.1", "0.3")]
    added = ["1/seed0", "1/seed1", "0.3/seed2", "1/seed2"]
    assert names(sweep) == known + [f"learning_rate={name}" for name in added]


def test_cells_are_known_by_what_they_change(tmp_path):
    """The name of a cell depends on what else varies: that makes no other run of it."""
    open_sweep(str(tmp_path), plan({"a": {RATE: "0.1"}, "b": {}}))
    sweep = open_sweep(str(tmp_path), plan({"rate=0.1": {RATE: "0.1"}, "b": {RATE: "0.2"}}))
    assert names(sweep) == ["a/seed0", "b/seed0", f"{RATE}=0.2/seed0"]


def test_seeds_begin_at_that_of_the_config(tmp_path):
    asked = plan({"a": {}}, seeds=2, overrides=[("seed", "7")])
    assert names(Sweep(tmp_path, asked)) == ["a/seed7", "a/seed8"]
    with pytest.raises(UserError, match="expected fields but the seed, which --seeds=N varies"):
        plan({"a": {"seed": "3"}})


def test_another_config_is_refused(tmp_path):
    open_sweep(str(tmp_path), plan(overrides=[("training.num_steps", "7")]))
    words = "another config: training.num_steps '7', now '8'; choose another --workdir"
    with pytest.raises(RunDirectoryError, match=words):
        open_sweep(str(tmp_path), plan(overrides=[("training.num_steps", "8")]))
    with pytest.raises(RunDirectoryError, match="config 'configs/quickstart.py:smoke', now 'conf"):
        open_sweep(str(tmp_path), plan(config="configs/bahdanau2015.py:smoke",
                                       overrides=[("training.num_steps", "7")]))  # fmt: skip


def test_a_finished_run_of_another_config_is_refused(tmp_path):
    """As after the config file was edited: its table would compare what cannot be compared."""
    sweep = open_sweep(str(tmp_path), plan())
    finish(sweep.runs[0])
    open_sweep(str(tmp_path), plan())
    config = sweep.runs[1].resolved()
    config["training"]["num_steps"] = 1234
    finish(sweep.runs[1], config)
    words = r"0.3/seed0 was made with training.num_steps 1234, now \d+; choose another --workdir"
    with pytest.raises(RunDirectoryError, match=words):
        open_sweep(str(tmp_path), plan())


def test_a_mistake_leaves_nothing_behind(tmp_path):
    wrong = {"a": {}, "b": {"optimizer.learning_rat": "1"}}
    with pytest.raises(ConfigError, match="did you mean 'learning_rate'"):
        open_sweep(str(tmp_path / "s"), plan(wrong))
    with pytest.raises(ConfigError, match="learning_rate: expected float, found 'fast'"):
        open_sweep(str(tmp_path / "s"), plan({"a": {RATE: "fast"}}))
    assert not (tmp_path / "s").exists()


def test_other_directories_are_refused(tmp_path):
    with pytest.raises(RunDirectoryError, match="expected the directory of a sweep, found no swee"):
        open_sweep(str(tmp_path), None)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(RunDirectoryError, match="found one with 'config.json' and no sweep.json"):
        open_sweep(str(tmp_path), plan())
    (tmp_path / "sweep.json").write_text(json.dumps({"cells": []}))
    with pytest.raises(RunDirectoryError, match="sweep.json"):
        open_sweep(str(tmp_path), None)


def test_the_split_of_the_report_is_one_that_is_evaluated(tmp_path):
    for splits, split in (("('validation','test')", "test"), ("('validation',)", "validation"),
                          ("()", "")):  # fmt: skip
        sweep = Sweep(tmp_path, plan(overrides=[("evaluation.splits", splits)]))
        assert sweep.split == split
        assert list(sweep.runs[0].grid.kept) == ([f"resamples.{split}.npz"] if split else [])
    assert {"nll", "bleu", "chrf"} <= set(sweep.runs[0].grid.curves)
