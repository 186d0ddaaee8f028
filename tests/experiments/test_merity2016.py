"""The pointer sentinel: the grid, likelihoods by frequency, and the page of records."""

import json

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from attention_jax.experiment import run_experiment
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.load import load_run
from attention_jax.sweeps import archive
from configs import merity2016
from experiments import merity2016 as experiment
from experiments.kit import kept_counts, word_likelihoods
from tests.experiments.measured import made_record


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_every_cell_is_a_config(tmp_path):
    for run in experiment.make_grid().runs(tmp_path, tmp_path)[:3]:
        config = from_config_dict(run.resolved())
        assert ("pointer_loss" in config.objectives) == (run.cell != "none")
        assert (config.model.readout.name == "softmax") == (run.cell == "none")


def test_likelihoods_of_all_words_are_the_perplexity_of_the_run(tmp_path):
    config = merity2016.get_config("smoke")
    config.training.update({"num_steps": 3, "evaluate_every_steps": 0})
    config.evaluation.splits = ("test",)
    run_experiment(from_config_dict(config), tmp_path / "run")
    run = load_run(tmp_path / "run")
    sums = word_likelihoods.likelihoods(run)
    found = word_likelihoods.Likelihoods(sums.sum(axis=1))
    perplexity = json.loads(run.directory.results.read_text())["test"]["perplexity"]
    np.testing.assert_allclose(found.score(found.counts.sum(0)), perplexity, rtol=1e-4)
    word_likelihoods.record(run)
    with np.load(run.directory.path / word_likelihoods.FILE) as arrays:
        np.testing.assert_allclose(arrays[kept_counts.ARRAY], sums, rtol=1e-5)


def test_the_page_compares_with_no_pointer(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid, records = experiment.make_grid(), []
    runs = grid.runs(tmp_path / "runs", tmp_path)
    for run in runs:
        words = np.full((100, len(word_likelihoods.GROUPS)), 5.0)
        gains = np.array([0.2, 0.2, 0.2, 0.0])  # of all but the most frequent words
        each = 4.6 - gains * (run.cell != "none") + 0.01 * numpy_rng.normal(size=words.shape)
        counts = np.stack([words * each, words], axis=-1)
        arrays = {word_likelihoods.FILE: {kept_counts.ARRAY: np.float32(counts)}}
        records.append(made_record(run, config=run.resolved(), arrays=arrays))
    archive.add(runs[0].records, records)
    (page,) = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert "| system | all words | at most 10 times |" in text and "| no pointer | 99." in text
    for group in ("all words", *word_likelihoods.GROUPS):
        start = f"| {group} | pointer sentinel |"
        (row,) = [line for line in text.splitlines() if line.startswith(start)]
        assert ("| < 0.0" in row) == (group != word_likelihoods.GROUPS[-1])
