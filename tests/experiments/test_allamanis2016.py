"""Names of functions: the grid, what is kept of a run, and the page of records."""

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from attention_jax.runs.config import from_config_dict
from attention_jax.sweeps import archive
from experiments import allamanis2016 as experiment
from tests.experiments.measured import made_record, resamples_of


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


def test_the_page_has_both_ranks_and_compares_with_attention(tmp_path, numpy_rng):
    grid, records = experiment.make_grid(), []
    runs = grid.runs(tmp_path / "runs", tmp_path)
    scores = dict(zip(experiment.COLUMNS, (40.0, 50.0, 20.0, 30.0), strict=True))
    noise = numpy_rng.normal(size=seeds.RESAMPLES)  # of the functions, alike in all runs
    for run in runs:
        gain = 0.0 if run.cell == "attention" else 9.0
        arrays = {
            "resamples.test.npz": {
                name: np.array([199.0, scores[name] + more, *(scores[name] + more + noise)])
                for name, more in {**dict.fromkeys(scores, 0.0), "f1": gain}.items()
            }
        }
        records.append(made_record(run, config=run.resolved(), arrays=arrays, **scores))
    archive.add(runs[0].records, records)
    (page,) = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    row = "| convolutional copy attention | 3 | 40.00 ± 0.00 | 50.00 ± 0.00 | 20.00 ± 0.00 | 30.00"
    assert row in text
    tables = [part for part in text.split("\n\n") if ", against attention | 95 % interval" in part]
    assert len(tables) == len(experiment.COLUMNS)
    for table, label in zip(tables, experiment.COLUMNS.values(), strict=True):
        assert table.startswith(f"| system | {label}, against attention |")
        row = table.splitlines()[2]
        assert row.startswith("| convolutional attention | ")
        assert ("| +9.00 |" in row) == (label == "F1, rank 1")


def test_a_page_of_tiny_runs_tests_what_made_up_code_has(tmp_path):
    grid = experiment.make_grid(smoke=True)
    runs = grid.runs(tmp_path / "runs", tmp_path)
    kept = {"resamples.test.npz": resamples_of(exact_match=10.0, bleu=20.0)}
    archive.add(runs[0].records, [made_record(run, arrays=kept) for run in runs])
    (page,) = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert "exact match, rank 1, against attention" in text
    assert "F1, rank 1, against attention" not in text
