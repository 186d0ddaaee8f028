"""Rationales: the configs of the grid resolve, and the page tests generators against attention."""

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from attention_jax.sweeps import archive
from experiments import rationales as experiment
from experiments.kit import kept_counts, sample_document, selected_words
from tests.experiments.measured import DOCUMENT, made_record, resamples_of

FIRST = ("attention", "independent_0.05", "recurrent_0.05", "hard_kuma_0.05")


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)
    monkeypatch.setattr(seeds, "RESAMPLES", 100)


def counts(selected, right):
    """Ten documents of 100 words, of which 20 are marked as one span; so many are selected.

    They are one span, which is found where more than half of them are right.
    """
    spans = (right > selected / 2, 1, 1)
    return np.float32([[[right, selected, 20, 100, *spans]]] * 10)


def record(run):
    """Attention selects at random; generators 10 words of which 8 are right, HardKuma 2."""
    if run.cell == experiment.ATTENTION:
        kept = [counts(share, 0.2 * share) for share in selected_words.SHARES]
    else:
        kept = [counts(10, 2 if run.cell.startswith("hard_kuma") else 8)]
    arrays = {
        sample_document.FILE: sample_document.arrays(DOCUMENT),
        selected_words.FILE: {kept_counts.ARRAY: np.concatenate(kept, axis=1)},
        "resamples.test.npz": resamples_of(
            label_accuracy=90.0 - 5 * (run.cell != experiment.ATTENTION)
        ),
    }
    return made_record(run, arrays=arrays, label_accuracy=80.0 + run.seed)


def report(tmp_path, cells, record=record):
    grid = experiment.make_grid()
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.cell in cells]
    archive.add(runs[0].records, [*map(record, runs)])
    page, *pictures = experiment.write_report(grid, runs, tmp_path)
    assert all(f"]({grid.name}/{picture.name})" in page.read_text() for picture in pictures)
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    return page.read_text(), [picture.name for picture in pictures]


def test_generators_and_shares_differ(tmp_path):
    grid = experiment.make_grid()
    assert len(grid.cells) == 12 and [*grid.cells][: len(FIRST)] == [*FIRST]
    runs = {run.cell: run for run in grid.runs(tmp_path, tmp_path)}
    assert runs["attention"].resolved()["model"]["name"] == "classifier"
    for cell, target, sparsity, coherence, baseline in (
        ("recurrent_0.2", 0.2, 5e-4, 0.5, "moving_average"),
        ("recurrent_paper", 0.0, 3e-4, 2.0, "none"),
        ("hard_kuma_0.1", 0.1, 5e-4, 0.5, "moving_average"),
    ):  # fmt: skip
        found = runs[cell].resolved()
        assert found["model"]["generator"]["selector"]["name"] == cell.rpartition("_")[0]
        rationale = found["objectives"]["rationale"]
        assert (rationale["target_share"], rationale["sparsity"]) == (target, sparsity)
        assert (rationale["coherence"], rationale["baseline"]) == (coherence, baseline)
        # The cost at a target is measured where there is one.
        assert ("at_target" in found["training"]["metric"]) == bool(target)
    assert len({run.resolved()["data"]["vocabulary_size"] for run in runs.values()}) == 1
    assert [*experiment.make_grid(smoke=True).cells][: len(FIRST)] == [*FIRST]


def test_the_page_has_every_cell(tmp_path):
    text, pictures = report(tmp_path, experiment.make_grid().cells)
    rows = [line for line in text.splitlines() if "| 3 | 81.00 ± 1.00 |" in line]
    assert len(rows) == 12 and "Only" not in text
    assert "–" in rows[0]  # a score that no run has
    assert pictures == ["precision.png", "document.png"]


def test_the_first_cells_test_the_claim(tmp_path):
    """Attention's F1 at 10 %: 2 * 2 / (10 + 20); that of generators 2 * 8 / 30."""
    text, _ = report(tmp_path, FIRST)
    assert text.count("| 0 of 3 |") == len(FIRST) - 1  # collapsed
    assert "| recurrent 0.05 | 10.00 ± 0.00 | 0.00 ± 0.00 | +100.00 |" in text  # IOU F1
    (section,) = [part for part in text.split("\n## ") if part.startswith("Recurrent against")]
    assert "| recurrent 0.05 | +0.00 |" in section and "| hard kuma" not in section
    start = "| recurrent 0.05 | 10.00 ± 0.00 | 13.33 ± 0.00 | +40.00 | 40.00 to 40.00 | < 0.0"
    assert start in text and start.replace("recurrent", "independent") in text
    assert "| hard kuma 0.05 | 10.00 ± 0.00 | 13.33 ± 0.00 | +0.00 | " in text
    assert "| hard kuma 0.05 | -5.00 | -5.00 to -5.00 | < 0.0" in text  # accuracy
    assert "**Only 12 of 36 runs are finished.**" in text


def test_seeds_that_select_nothing_or_everything_are_counted(tmp_path):
    selected = {0: 0, 1: 100, 2: 50}
    arrays = sample_document.arrays(DOCUMENT)

    def collapsed(run):
        kept = {kept_counts.ARRAY: counts(selected[run.seed], selected[run.seed] / 5)}
        return made_record(run, arrays={sample_document.FILE: arrays, selected_words.FILE: kept})

    text, _ = report(tmp_path, ["hard_kuma_0.05"], collapsed)
    assert "| 2 of 3 |" in text and "## Recurrent against" not in text


def test_a_page_without_attention_tests_nothing(tmp_path):
    text, pictures = report(tmp_path, ["independent_0.05"])
    assert "against attention's" not in text and pictures == ["precision.png"]
