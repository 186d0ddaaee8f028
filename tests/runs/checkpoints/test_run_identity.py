"""What a run directory and its checkpoints say of where they come from."""

import dataclasses

import pytest

from attention_jax.errors import CheckpointError, RunDirectoryError
from attention_jax.experiment import adopt_config
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.runs.checkpoints.reading import Checkpoint
from attention_jax.runs.checkpoints.run_identity import check_origin, origin
from attention_jax.runs.config import ExperimentConfig, from_config_dict
from attention_jax.runs.hashes import hash_files
from attention_jax.runs.run_directory import RunDirectory


@pytest.fixture
def config() -> ExperimentConfig:
    sections = {"data": {"name": "smoke"}, "model": {"name": "encoder_decoder"}}
    return from_config_dict({**sections, "training": {"num_steps": 3}})


@pytest.fixture
def directory(tmp_path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "run")
    directory.vocabularies.mkdir(parents=True)
    (directory.vocabularies / "symbols").write_text("a b")
    return directory


def test_a_training_that_never_began_holds_nobody_up(directory, config):
    adopt_config(directory, config)
    directory.add_to_run(started=["then"])
    other = dataclasses.replace(config, seed=1)
    adopt_config(directory, other)
    assert directory.read_config()["seed"] == 1
    assert not directory.vocabularies.exists() and not directory.run.exists()
    directory.metrics.write_text("{}\n")
    with pytest.raises(RunDirectoryError, match="seed is 1 there, 0 now"):
        adopt_config(directory, config)
    assert directory.read_config()["seed"] == 1


def check(directory, config, saved):
    checkpoint = Checkpoint(3, {}, {}, saved, {})
    with Checkpointer(directory.checkpoints, read_only=True) as checkpointer:
        check_origin(checkpointer, checkpoint, config, directory)


def test_a_checkpoint_of_the_same_run_is_taken(directory, config):
    saved = origin(config, directory)
    check(directory, config, saved)
    training = dataclasses.replace(config.training, log_every_steps=7)
    check(directory, dataclasses.replace(config, training=training), saved)
    del saved["vocabularies"]  # written before they were recorded
    check(directory, config, saved)


def test_a_checkpoint_of_another_run_is_refused(directory, config):
    saved = origin(dataclasses.replace(config, seed=5), directory)
    with pytest.raises(CheckpointError, match="3 is of another run: seed was 5, here it is 0"):
        check(directory, config, saved)


def test_other_vocabularies_are_refused(directory, config):
    saved = origin(config, directory)
    (directory.vocabularies / "symbols").write_text("b a")
    with pytest.raises(CheckpointError, match="trained with other vocabularies than those in"):
        check(directory, config, saved)


def test_hash_knows_names_and_contents(tmp_path):
    (tmp_path / "a").mkdir()
    hashes = [hash_files(tmp_path)]
    (tmp_path / "a" / "b").write_text("x")
    hashes.append(hash_files(tmp_path))
    (tmp_path / "a" / "b").rename(tmp_path / "a" / "c")
    hashes.append(hash_files(tmp_path))
    assert len(set(hashes)) == 3
