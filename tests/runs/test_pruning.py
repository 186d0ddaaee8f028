"""A pruned run is evaluated with the same bits, is not continued, and is whole wherever cut."""

import json
import shutil

import jax
import numpy as np
import pytest

from attention_jax.errors import CheckpointError, RunDirectoryError, UserError
from attention_jax.runs import pruning
from attention_jax.runs.load import load_run
from attention_jax.runs.pruning import Kept, prune
from attention_jax.runs.run_directory import RunDirectory

CONFIG = "--config=configs/quickstart.py:smoke"


@pytest.fixture
def finished(trained, tmp_path):
    """A copy of a finished run."""
    return shutil.copytree(trained, tmp_path / "run")


def _kept(directory) -> Kept:
    run = load_run(directory)
    return Kept(run.params, run.step, run.texts)


def _same(one: Kept, other: Kept) -> bool:
    leaves = zip(jax.tree.leaves(one.params), jax.tree.leaves(other.params), strict=True)
    same = all(np.array_equal(*map(np.asarray, pair)) for pair in leaves)
    return same and (one.step, one.texts) == (other.step, other.texts)


def test_a_pruned_run_does_all_but_going_on(finished, launch, tmp_path):
    before, numbers = _kept(finished), tmp_path / "numbers"
    numbers.write_text("3 1 4\n")
    texts = f"--source={numbers}", f"--target={numbers}"
    scored = launch("score", f"--workdir={finished}", *texts)
    pruned = launch("weights", f"--workdir={finished}", "--prune")
    assert pruned.code == 0, pruned.err
    weights = finished / "weights.safetensors"
    assert pruned.out.startswith(f"{weights} holds step {before.step}; freed ")
    assert not (finished / "checkpoints").exists()
    assert _same(_kept(finished), before)
    assert launch("score", f"--workdir={finished}", *texts).out == scored.out
    command = ("train", CONFIG, f"--workdir={finished}")
    assert "This run is complete" in launch(*command).out
    refused = launch(*command, "--config.training.num_steps=500").error
    assert "found a pruned run; a new --workdir starts from its parameters with" in refused
    assert f"--config.training.initial_weights={weights}" in refused
    # A data set that makes its vocabularies anew, the same ones, has no field that names others.
    has_field = "vocabularies" in RunDirectory(finished).read_config()["data"]
    assert ("--config.data.vocabularies=" in refused) == has_field
    with pytest.raises(CheckpointError, match="to find step 3 among, found a pruned run"):
        load_run(finished, step=3)
    assert launch("weights", f"--workdir={finished}", "--prune").out.endswith("freed 0.0 MB\n")


@pytest.mark.parametrize("place", [(pruning.os, "replace"), (pruning.shutil, "rmtree")])
def test_pruning_that_is_cut_off_leaves_a_whole_run(finished, monkeypatch, place):
    directory, before = RunDirectory(finished), _kept(finished)

    def cut_off(path, *_):
        if place[1] == "rmtree":  # when a part is gone
            next(file for file in path.rglob("d/*") if file.is_file()).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(*place, cut_off)
        prune(directory, before)
    assert _same(_kept(finished), before)
    assert prune(directory, before) > 0
    assert not directory.checkpoints.exists() and _same(_kept(finished), before)
    assert not list(finished.glob(".unchecked*"))


def test_neither_a_file_nor_pruning_is_one_line_that_names_both(launch, tmp_path):
    error = launch("weights", f"--workdir={tmp_path}").error
    assert error == "--output, --prune: expected one of them, found neither"


def test_a_run_that_would_go_on_is_not_pruned(finished):
    directory, before = RunDirectory(finished), _kept(finished)
    facts = json.loads(directory.run.read_text())
    directory.run.write_text(json.dumps({**facts, "finished": None}))
    with pytest.raises(RunDirectoryError, match="expected a finished run, found one whose"):
        prune(directory, before)
    assert directory.checkpoints.exists() and not directory.is_pruned


def test_damaged_weights_and_those_of_other_vocabularies_are_refused(finished):
    directory = RunDirectory(finished)
    prune(directory, _kept(finished))
    vocabulary = next(path for path in directory.vocabularies.rglob("*") if path.is_file())
    kept = vocabulary.read_bytes()
    vocabulary.write_bytes(kept + b"\n")
    with pytest.raises(UserError):
        load_run(finished)
    vocabulary.write_bytes(kept)
    directory.weights.write_bytes(directory.weights.read_bytes()[:-8])
    with pytest.raises(UserError, match="weights.safetensors is no safetensors file"):
        load_run(finished)


def test_what_is_not_read_again_as_it_was_written_takes_no_checkpoint(finished, monkeypatch):
    directory, before = RunDirectory(finished), _kept(finished)
    changed = jax.tree.map(lambda leaf: np.asarray(leaf) + 1, before.params)
    monkeypatch.setattr(pruning, "load_weights", lambda *_: changed)
    with pytest.raises(CheckpointError, match="not read again as it was written"):
        prune(directory, before)
    assert directory.checkpoints.exists() and not directory.is_pruned
