"""A run goes on, and is evaluated, with the texts that it began with."""

import dataclasses
import json

import pytest

from attention_jax.data.config import ParallelConfig
from attention_jax.errors import DataError
from attention_jax.inference.run import run_experiment
from attention_jax.inference.trained import load_run, task_of
from tests.training.tiny import tiny_config

OTHERS = "expected the texts that this run began with, found others for train"


def write_table(path, numbers):
    path.write_text("".join(f"number {each}\tNummer {each}\n" for each in numbers))


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """(config, run directory, training table, test table) of a run on files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    table, test = tmp_path / "train.tsv", tmp_path / "test.tsv"
    write_table(table, range(60))
    write_table(test, range(90, 94))
    data = ParallelConfig(train_table=str(table), test_table=str(test), batch_size=16)
    data = dataclasses.replace(
        data, num_buckets=1, subwords=dataclasses.replace(data.subwords, kind="words")
    )
    config = dataclasses.replace(tiny_config(num_steps=2), data=data)
    workdir = tmp_path / "run"
    run_experiment(config, workdir)
    return config, workdir, table, test


def test_other_training_text_is_refused_and_nothing_is_lost(trained):
    config, workdir, table, _ = trained
    before = {path: path.read_bytes() for path in workdir.rglob("*") if path.is_file()}
    write_table(table, range(5, 70))
    longer = dataclasses.replace(config, training=dataclasses.replace(config.training, num_steps=4))
    with pytest.raises(DataError, match=OTHERS):
        run_experiment(longer, workdir)
    with pytest.raises(DataError, match=OTHERS):
        task_of(load_run(workdir))
    assert json.loads((workdir / "run.json").read_text())["finished"]
    for path in ("config.json", "results.json", "metrics.jsonl"):
        assert (workdir / path).read_bytes() == before[workdir / path]
    write_table(table, range(60))
    run_experiment(longer, workdir)
    assert json.loads((workdir / "results.json").read_text())["test"]["step"] == 4


def test_a_run_may_be_tested_on_other_text(trained):
    _, workdir, _, test = trained
    write_table(test, range(80, 99))
    assert len(task_of(load_run(workdir)).split("test")) == 19


def test_runs_of_earlier_versions_know_nothing_of_their_texts(trained):
    _, workdir, table, _ = trained
    facts = json.loads((workdir / "run.json").read_text())
    facts.pop("texts")
    (workdir / "run.json").write_text(json.dumps(facts))
    write_table(table, range(5, 70))
    assert len(task_of(load_run(workdir)).split("test")) == 4
