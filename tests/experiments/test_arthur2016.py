"""Translation lexicons: the grid, what rare words are, and the page of records."""

from collections import Counter

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from attention_jax.runs.config import from_config_dict
from attention_jax.sweeps import archive
from experiments import arthur2016 as experiment
from experiments.kit import kept_counts, rare_words
from tests.experiments.measured import made_record, resamples_of


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_every_cell_is_a_config(tmp_path):
    runs = experiment.make_grid().runs(tmp_path, tmp_path)
    assert len(runs) == 3 * len(experiment.CORPORA) * len(experiment.SYSTEMS)
    for run in {run.cell: run for run in runs}.values():
        config, system = from_config_dict(run.resolved()), run.cell.partition(".")[2]
        assert config.data.lexicon.is_given == (system != "none")
        assert config.model.readout.name.removeprefix("lexicon_") in (system, "softmax")


def test_rare_words_are_counted_as_often_as_both_have_them():
    known = Counter({"the": 90, "cat": 6, "dog": 5})
    found = rare_words.rare_word_counts(
        ["the dog dog yeti", "the cat"], ["the dog yeti yeti", "the cat"], known
    )
    np.testing.assert_array_equal(found.counts, [[2, 3], [0, 0]])
    np.testing.assert_allclose(found.score(found.counts.sum(0)), 200 / 3)


def test_the_page_compares_with_no_lexicon(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid, records = experiment.make_grid(), []
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if "4k" in run.cell]
    for run in runs:
        share = 0.2 if run.cell.endswith(".none") else 0.6
        words = np.full(200, 3)
        counts = np.stack([numpy_rng.binomial(words, share), words], axis=-1)
        arrays = {
            rare_words.FILE: {kept_counts.ARRAY: np.float32(counts)},
            "resamples.test.npz": resamples_of(bleu=30.0 + 4 * run.cell.endswith(".linear")),
        }
        records.append(made_record(run, config=run.resolved(), bleu=30.0, arrays=arrays))
    archive.add(runs[0].records, records)
    (page,) = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert "| Multi30k, 4,000 pairs | bias | 30.00 ± 0.00 |" in text
    recall, bleu = (row for row in text.splitlines() if "| bias | +" in row)
    assert "| < 0.0" in recall and "| bias | +0.00 | 0.00 to 0.00 | 1.000 |" in bleu
    assert "| corpus | lexicon | BLEU, against none |" in text
    assert "| interpolation | +4.00 | 4.00 to 4.00 | < 0.0" in text


def test_the_page_has_curves_of_the_runs_whose_records_have_some(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid, records = experiment.make_grid(), []
    assert grid.curves == ("perplexity",)
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if "4k" in run.cell]
    for run in runs:
        system = run.cell.partition(".")[2]
        values = {"none": [90.0, 40.0, 20.0], "bias": [50.0, 20.0, 10.0]}.get(system)
        curves = {"perplexity": {"validation": [[100, 200, 300], values]}} if values else {}
        counts = np.stack([numpy_rng.binomial(3, 0.5, 50), np.full(50, 3)], axis=-1)
        arrays = {rare_words.FILE: {kept_counts.ARRAY: np.float32(counts)}}
        records.append(made_record(run, bleu=30.0, arrays=arrays, curves=curves))
    archive.add(runs[0].records, records)
    page, plot = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert "| Multi30k, 4,000 pairs | seeds | 100 | 200 | 300 | as low as no" in text
    assert "| bias | 3 | 50.00 ± 0.00 | 20.00 ± 0.00 | 10.00 ± 0.00 | 200 |" in text
    assert "| interpolation | 3 |" not in text and "arthur2016/multi30k_4k_curves.png" in text
    assert plot.read_bytes().startswith(b"\x89PNG")
