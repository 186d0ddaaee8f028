"""Names of functions: the grid, what is kept of a run, and the page of records."""

import types

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.sweeps import archive
from attention_jax.sweeps.kept_files import kept_arrays
from experiments import allamanis2016 as experiment
from experiments.kit import kept_counts, name_outcomes
from tests.experiments.measured import made_record


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


@pytest.mark.parametrize("smoke", [False, True])
def test_every_cell_is_a_config(smoke, tmp_path):
    for run in experiment.make_grid(smoke).runs(tmp_path, tmp_path)[:3]:
        config = from_config_dict(run.resolved())
        assert config.task.label == ("code" if smoke else "method naming")
        assert (config.model.attention.name == "convolutional") == (run.cell != "attention")
        assert (config.model.readout.name == "convolutional_copy") == (run.cell == "copying")


def test_outcomes_are_f1_and_exact_match_of_every_name(tmp_path):
    table = "source\toutput\treference\nreturn x\tget x y\tget x\n-\tset x\tset x\n"
    (tmp_path / "predictions.test.tsv").write_text(table)
    name_outcomes.record(types.SimpleNamespace(directory=RunDirectory(tmp_path)))
    counts = kept_arrays(tmp_path / name_outcomes.FILE, "counts")[kept_counts.ARRAY]
    np.testing.assert_allclose(counts, [[0.8, 0, 1], [1, 1, 1]], rtol=1e-6)
    assert name_outcomes.NameOutcomes(counts).score(counts.sum(axis=0)) == pytest.approx(90.0)


def test_the_page_has_both_ranks_and_compares_with_attention(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid, records = experiment.make_grid(), []
    runs = grid.runs(tmp_path / "runs", tmp_path)
    scores = dict(zip(experiment.COLUMNS, (40.0, 50.0, 20.0, 30.0), strict=True))
    for run in runs:
        f1 = numpy_rng.random(200) * (0.5 if run.cell == "attention" else 0.9)
        counts = np.stack([f1, 0 * f1, 0 * f1 + 1], axis=-1)
        arrays = {name_outcomes.FILE: {kept_counts.ARRAY: np.float32(counts)}}
        records.append(made_record(run, config=run.resolved(), arrays=arrays, **scores))
    archive.add(runs[0].records, records)
    (page,) = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    row = "| convolutional copy attention | 3 | 40.00 ± 0.00 | 50.00 ± 0.00 | 20.00 ± 0.00 | 30.00"
    assert row in text
    (row,) = [line for line in text.splitlines() if "| convolutional attention | +" in line]
    assert "| < 0.0" in row
