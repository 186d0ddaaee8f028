"""The grids of documents and rationales: their configs resolve, and their pages have every cell."""

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from attention_jax.plotting.document_page import ShownDocument, ShownSentence
from experiments import documents, rationales
from experiments.kit import sample_document
from tests.experiments.measured import made_record, write_records

DOCUMENT = ShownDocument(
    "first", "pos", "neg",
    [
        ShownSentence(["not", "good"], np.array([0.25, 0.75]), 0.75),
        ShownSentence(["end"], np.array([0.0]), 0.25),
    ],
)  # fmt: skip


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_poolings_differ_at_both_levels(tmp_path):
    for run in documents.make_grid(smoke=True).runs(tmp_path, tmp_path):
        model = run.resolved()["model"]
        found = [model[level]["pooling"]["name"] for level in ("words", "sentences")]
        assert found == [run.cell, run.cell]


def test_generators_and_prices_differ(tmp_path):
    grid = rationales.make_grid()
    assert len(grid.cells) == 16
    runs = {run.cell: run for run in grid.runs(tmp_path, tmp_path)}
    assert runs["attention"].resolved()["model"]["name"] == "classifier"
    found = runs["recurrent_paper_0.001"].resolved()
    assert found["model"]["generator"]["selector"]["name"] == "recurrent"
    assert found["objectives"]["rationale"]["baseline"] == "none"
    assert found["objectives"]["rationale"]["sparsity"] == 1e-3


@pytest.mark.parametrize("experiment", [documents, rationales])
def test_the_page_has_the_mean_of_every_cell(tmp_path, experiment):
    grid = experiment.make_grid()
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
    page, picture = experiment.write_report(grid, runs, tmp_path)
    if experiment is documents:
        assert "| average | +0.00 | 0.00 to 0.00 | 1.000 |" in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"]({grid.name}/{picture.name})" in page.read_text()
    text = page.read_text()
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
