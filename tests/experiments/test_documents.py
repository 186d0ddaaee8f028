"""Documents: the configs of the grid resolve, and the page has every cell."""

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from experiments import documents
from experiments.kit import sample_document
from tests.experiments.measured import DOCUMENT, made_record, write_records


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_poolings_differ_at_both_levels(tmp_path):
    for run in documents.make_grid(smoke=True).runs(tmp_path, tmp_path):
        model = run.resolved()["model"]
        found = [model[level]["pooling"]["name"] for level in ("words", "sentences")]
        assert found == [run.cell, run.cell]


def test_the_page_has_the_mean_of_every_cell(tmp_path):
    grid = documents.make_grid()
    runs = grid.runs(tmp_path / "runs", tmp_path)
    draws = 80.0 + np.arange(seeds.RESAMPLES) % 5
    kept = {
        sample_document.FILE: sample_document.arrays(DOCUMENT),
        "resamples.test.npz": {"label_accuracy": np.array([199.0, 80.0, *draws])},
    }
    records = [
        made_record(run, arrays=kept, label_accuracy=80.0 + run.seed, macro_f1=70.0)
        for run in runs
    ]
    write_records(runs, records)
    page, picture = documents.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert "| average | +0.00 | 0.00 to 0.00 | 1.000 |" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"]({grid.name}/{picture.name})" in text
    rows = [line for line in text.splitlines() if "| 3 | 81.00 ± 1.00 |" in line]
    assert len(rows) == len(grid.cells) and "Only" not in text
    assert "–" in rows[0]  # a score that no run has


def test_a_document_comes_back_from_its_record(tmp_path):
    run, *_ = documents.make_grid().runs(tmp_path / "runs", tmp_path)
    kept = {sample_document.FILE: sample_document.arrays(DOCUMENT, [(1, 3)])}
    write_records([run], [made_record(run, arrays=kept)])
    found = sample_document.of_run(run, "first")
    assert (found.key, found.told, found.label) == ("first", "pos", "neg")
    for one, other in zip(found.sentences, DOCUMENT.sentences, strict=True):
        assert (one.words, one.share) == (other.words, other.share)
        np.testing.assert_array_equal(one.weights, other.weights)
    assert [one.marked for one in found.sentences] == [(False, True), (True,)]
