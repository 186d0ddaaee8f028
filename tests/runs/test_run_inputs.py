"""A run goes on, and is evaluated, with the texts that it began with."""

import dataclasses
import json
import shutil

import pytest

from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.config import AlignmentConfig, SubwordsConfig
from attention_jax.errors import DataError
from attention_jax.experiment import run_experiment
from attention_jax.objectives.supervised_alignment import Term
from attention_jax.runs.load import load_run, task_of
from attention_jax.runs.named_files import with_files
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.runs.run_inputs import check_inputs, check_texts
from tests.training.tiny import tiny_config
from tests.training.untrained import write_text

OTHERS = "expected the texts that this run began with, found others for train"


def write_table(path, numbers):
    path.write_text("".join(f"number {each}\tNummer {each}\n" for each in numbers))


def supervised(folder, num_steps=2):
    """Returns a config that is taught the links of `links.txt` between the words of two files."""
    sides = {f"train_{side}": str(folder / f"text.{code}")
             for side, code in (("source", "en"), ("target", "de"))}  # fmt: skip
    lines = [line.split() for line in (folder / "text.en").read_text().splitlines()]
    links = "".join(" ".join(f"{at}-{at}" for at in range(len(words))) + "\n" for words in lines)
    (folder / "links.txt").write_text(links)
    alignment = AlignmentConfig(method="file", file=str(folder / "links.txt"))
    subwords = SubwordsConfig(kind="words")
    data = ParallelConfig(
        **sides, subwords=subwords, alignment=alignment, batch_size=8, num_buckets=1
    )
    config = tiny_config(num_steps=num_steps, evaluation={"splits": ()})
    objectives = {**config.objectives, "supervised_alignment": Term()}
    return dataclasses.replace(config, data=data, objectives=objectives)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """(config, run directory) of a run on files; not to be changed."""
    folder = tmp_path_factory.mktemp("whole")
    table, test = folder / "train.tsv", folder / "test.tsv"
    write_table(table, range(60))
    write_table(test, range(90, 94))
    data = ParallelConfig(train_table=str(table), test_table=str(test), batch_size=16)
    data = dataclasses.replace(
        data, num_buckets=1, subwords=dataclasses.replace(data.subwords, kind="words")
    )
    config = dataclasses.replace(tiny_config(num_steps=2), data=data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        run_experiment(config, folder / "run")
        yield config, folder / "run"


@pytest.fixture
def trained(whole, tmp_path):
    """(config, run directory, training table, test table) of a run, of which all may change."""
    config, run = whole
    table, test = run.with_name("train.tsv"), run.with_name("test.tsv")
    write_table(table, range(60))
    write_table(test, range(90, 94))
    return config, shutil.copytree(run, tmp_path / "run"), table, test


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


def test_a_text_at_another_path_does_not_pass_for_the_known_one(trained):
    """The known file is where it was; the config names another one beside it."""
    config, workdir, table, test = trained
    longer = dataclasses.replace(config, training=dataclasses.replace(config.training, num_steps=4))
    write_table(other := table.with_name("other.tsv"), range(5, 70))
    before = (workdir / "config.json").read_bytes()
    with pytest.raises(DataError, match=OTHERS):
        run_experiment(with_files(longer, {"data.train_table": str(other)}), workdir)
    assert (workdir / "config.json").read_bytes() == before
    write_table(other, range(80, 99))
    run_experiment(with_files(longer, {"data.test_table": str(other)}), workdir)
    assert len((workdir / "predictions.test.txt").read_text().splitlines()) == 19
    assert len(task_of(load_run(workdir)).split("test")) == 19


def test_a_run_may_be_tested_on_other_text(trained):
    _, workdir, _, test = trained
    write_table(test, range(80, 99))
    assert len(task_of(load_run(workdir)).split("test")) == 19


def test_runs_of_earlier_versions_know_nothing_of_their_texts(trained):
    config, workdir, _, _ = trained
    task = task_of(load_run(workdir))
    check_inputs({}, RunDirectory(workdir), task, config.data)


def _damaged_links(workdir):
    links = workdir / "links.train.txt"
    lines = links.read_text().splitlines()
    links.write_text("".join(f"{' '.join(line.split()[::2])}\n" for line in lines))


def test_damaged_links_are_not_trained_on(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_text(tmp_path)
    config = supervised(tmp_path)
    workdir = tmp_path / "run"
    run_experiment(config, workdir)
    whole = (workdir / "links.train.txt").read_bytes()
    known = json.loads((workdir / "run.json").read_text())
    longer = dataclasses.replace(config, training=dataclasses.replace(config.training, num_steps=4))
    for forgets in (False, True):  # a checkpoint knows, whatever happens to the file beside it
        _damaged_links(workdir)
        if forgets:
            facts = {name: fact for name, fact in known.items() if name not in ("texts", "hashes")}
            (workdir / "run.json").write_text(json.dumps(facts))
        with pytest.raises(DataError, match="links.train.txt: expected the word links that this"):
            run_experiment(longer, workdir)
    (workdir / "links.train.txt").unlink()
    run_experiment(longer, workdir)  # which finds the same ones
    assert (workdir / "links.train.txt").read_bytes() == whole


def test_a_checkpoint_knows_the_texts(trained):
    config, workdir, table, test = trained
    facts = json.loads((workdir / "run.json").read_text())
    facts.pop("texts")
    (workdir / "run.json").write_text(json.dumps(facts))
    write_table(test, range(80, 99))
    assert len(task_of(load_run(workdir)).split("test")) == 19
    write_table(table, range(5, 70))
    with pytest.raises(DataError, match=OTHERS):
        task_of(load_run(workdir))
    longer = dataclasses.replace(config, training=dataclasses.replace(config.training, num_steps=4))
    with pytest.raises(DataError, match=OTHERS):
        run_experiment(longer, workdir)


def test_a_test_text_that_is_held_out_lasts_as_well(trained):
    config, workdir, *_ = trained
    task = task_of(load_run(workdir))
    known = {**task.fingerprints, "test": "another"}
    directory = RunDirectory(workdir)
    check_texts(known, directory, task, config.data)
    held_out = dataclasses.replace(config.data, test_table="")
    with pytest.raises(DataError, match="found others for test;"):
        check_texts(known, directory, task, held_out)
