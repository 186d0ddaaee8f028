"""Files that a config names are known by what they hold, wherever they are."""

import dataclasses
import os

import pytest

from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.config import AlignmentConfig
from attention_jax.errors import DataError, RunDirectoryError
from attention_jax.experiment import adopt_config, run_experiment
from attention_jax.objectives.supervised_alignment import Term
from attention_jax.runs.config import to_plain
from attention_jax.runs.load import load_run, task_of
from attention_jax.runs.named_files import (
    Moved,
    check_beginning,
    check_texts_are_there,
    located,
    named_files,
    record_files,
    texts,
    with_files,
)
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.runs.run_inputs import TEXTS
from tests.runs.test_run_inputs import write_table
from tests.training.tiny import tiny_config

KEPT = {
    "data.vocabularies": "vocab",
    "data.alignment.file": "links",
    "training.initial_weights": "weights",
}
EVERY = {**KEPT, "data.train_source": "source", "data.train_target": "target",
         "search.unknown_dictionary": "words"}  # fmt: skip


def naming(folder, files=None):
    """Returns a config that names a file in every field."""
    alignment = AlignmentConfig(method="file", file="links")
    data = ParallelConfig(train_source="a", train_target="b", alignment=alignment)
    config = tiny_config(evaluation={"num_validation_examples": 4}, metric="bleu", mode="max")
    objectives = {**config.objectives, "supervised_alignment": Term()}
    config = dataclasses.replace(config, data=data, objectives=objectives)
    search = dataclasses.replace(config.search, replace_unknown=True, unknown_dictionary="c")
    config = dataclasses.replace(config, search=search)
    training = dataclasses.replace(config.training, initial_weights="d")
    data = dataclasses.replace(config.data, vocabularies="e")
    config = dataclasses.replace(config, training=training, data=data)
    return with_files(config, {field: os.path.join(folder, name)
                               for field, name in (files or EVERY).items()})  # fmt: skip


@pytest.fixture
def begun(tmp_path):
    """(config, run directory, folder of the files) of a run that has begun."""
    folder = tmp_path / "old"
    (folder / "vocab").mkdir(parents=True)
    for name in EVERY.values():
        (folder / name / "symbols" if name == "vocab" else folder / name).write_text(name)
    config, directory = naming(folder), RunDirectory(tmp_path / "run")
    directory.path.mkdir()
    directory.write_config(to_plain(config))
    directory.metrics.write_text("{}\n")
    record_files(directory, config)
    directory.add_to_run(**{TEXTS: {"train": "a", "validation": "b", "test": "c"}})
    return config, directory, folder


def test_every_field_that_names_a_file_is_found(begun):
    config, _, folder = begun
    assert named_files(config) == {field: str(folder / name) for field, name in EVERY.items()}
    assert named_files(tiny_config()) == {}
    assert set(texts(config)) == {"data.train_source", "data.train_target"}


def test_a_run_goes_on_with_files_that_have_moved(begun):
    _, directory, folder = begun
    folder.rename(folder.with_name("new"))
    adopt_config(directory, naming(folder.with_name("new")))


@pytest.mark.parametrize("field", [*KEPT, "search.unknown_dictionary"])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_of_another_content_is_not_the_one_that_moved(begun, field, is_gone):
    _, directory, folder = begun
    folder.rename(new := folder.with_name("new"))
    name = EVERY[field]
    path = new / "vocab" / "symbols" if name == "vocab" else new / name
    path.unlink() if is_gone else path.write_text("another")
    is_folder = name == "vocab" and is_gone  # which is empty then
    message = "where no file is" if is_gone and not is_folder else "which has another content"
    with pytest.raises(RunDirectoryError, match=f"{field} is .* now {message}"):
        adopt_config(directory, naming(new))


def test_files_are_found_from_another_directory(begun, tmp_path, monkeypatch):
    _, directory, folder = begun
    config = naming("old")
    monkeypatch.chdir(folder.parent)
    record_files(directory, located(config, directory))
    directory.write_config(to_plain(config))
    monkeypatch.chdir("/")
    assert named_files(located(config, directory)) == named_files(naming(folder))
    (other := tmp_path / "other").mkdir()
    monkeypatch.chdir(other)  # where a file of the same name is another one
    (other / "old").mkdir()
    (other / "old" / "source").write_text("another")
    (other / "old" / "target").write_text("target")
    found = texts(located(config, directory))
    assert found == {"data.train_source": str(folder / "source"), "data.train_target": "old/target"}


def test_a_text_that_is_gone_is_said_with_its_option(begun):
    config, directory, folder = begun
    check_texts_are_there(config, "--")
    (folder / "target").unlink()
    message = "target: expected the text of data.train_target, found no file; if it has moved, --c"
    with pytest.raises(DataError, match=message):
        check_texts_are_there(located(config, directory), "--config.")


def test_a_beginning_is_made_once(begun):
    config, directory, folder = begun
    check_beginning(directory, config)
    (folder / "weights").write_text("another")
    record_files(directory, config)  # which remembers the first
    with pytest.raises(DataError, match="config.training.initial_weights: expected the content"):
        check_beginning(directory, config)


def test_moved_files_are_found_in_other_runs_by_their_old_path(begun):
    config, _, folder = begun
    new = Moved({"data.train_source": "/new/source"})(config)
    assert new.data.train_source == "/new/source" and new.data.train_target.endswith("target")
    other = naming(folder, {"data.train_target": "source", "data.train_source": "target"})
    changed = Moved.between(config, new)(other)
    assert named_files(changed) == {**named_files(other), "data.train_target": "/new/source"}


def test_a_trained_run_is_continued_and_evaluated_where_its_text_is_now(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (old := tmp_path / "old").mkdir()
    write_table(old / "train.tsv", range(60))
    monkeypatch.chdir(tmp_path)
    data = ParallelConfig(train_table="old/train.tsv", batch_size=16, num_buckets=1)
    data = dataclasses.replace(
        data, subwords=dataclasses.replace(data.subwords, kind="words")
    )
    config = dataclasses.replace(tiny_config(num_steps=2, evaluation={"splits": ()}), data=data)
    run_experiment(config, "run")
    monkeypatch.chdir("/")
    directory = RunDirectory(tmp_path / "run")
    fingerprint = task_of(load_run(directory.path)).fingerprint
    old.rename(new := tmp_path / "new")
    with pytest.raises(DataError, match="old/train.tsv: .* --data.train_table= names its new"):
        task_of(load_run(directory.path))
    moved = Moved({"data.train_table": str(new / "train.tsv")})
    assert task_of(load_run(directory.path, moved=moved)).fingerprint == fingerprint
    config = with_files(config, moved.fields)
    config = dataclasses.replace(config, training=dataclasses.replace(config.training, num_steps=3))
    run_experiment(config, directory.path)
    assert load_run(directory.path).step == 3
    assert task_of(load_run(directory.path)).fingerprint == fingerprint
    write_table(new / "train.tsv", range(61))
    with pytest.raises(DataError, match="found others for train"):
        task_of(load_run(directory.path))
