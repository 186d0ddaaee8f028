"""Ensembles of the seeds of a cell."""

import shutil

import numpy as np

from attention_jax.runs.load import load_run
from attention_jax.runs.run_directory import read_json
from attention_jax.sweeps.kept_files import kept_arrays
from experiments.kit import seed_ensemble


def test_the_last_run_to_finish_speaks_for_all(trained, tmp_path):
    for seed in (0, 1):
        shutil.copytree(trained, tmp_path / f"seed{seed}")
    (tmp_path / "seed2").mkdir()  # not finished
    seed_ensemble.record(load_run(tmp_path / "seed1"))
    found = kept_arrays(tmp_path / "seed1" / seed_ensemble.FILE, "arrays")
    alone = load_run(trained)
    assert found["seeds"].tolist() == [alone.config.seed] * 2
    # A model beside itself predicts as it does alone.
    expected = read_json(alone.directory.results)["test"]["bleu"]
    np.testing.assert_allclose(found["bleu"], expected, atol=0.5)
    assert expected > 50


def test_a_seed_alone_is_no_ensemble(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "seed0")
    seed_ensemble.record(load_run(tmp_path / "seed0"))
    assert [*kept_arrays(tmp_path / "seed0" / seed_ensemble.FILE, "arrays")] == ["seeds"]
