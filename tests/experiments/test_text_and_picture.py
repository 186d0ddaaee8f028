"""Text and picture: the cells of the grid, and the page of records."""

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from attention_jax.runs.config import from_config_dict
from attention_jax.sweeps import archive
from experiments import text_and_picture as experiment
from experiments.kit import kept_counts, word_outcomes
from tests.experiments.measured import made_record, sample_of


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


@pytest.mark.parametrize("smoke", [False, True])
def test_every_cell_is_a_config(smoke, tmp_path):
    for run in experiment.make_grid(smoke).runs(tmp_path, tmp_path):
        language, _, system = run.cell.partition(".")
        config = from_config_dict(run.resolved())
        assert config.data.shuffled_pictures == (system == "shuffled")
        assert ("picture" in config.model.sources) == (system != "text")
        if not smoke:
            assert config.data.target_language == {"german": "de", "japanese": "ja"}[language]


def test_the_page_compares_with_text_alone(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid, records = experiment.make_grid(), []
    runs = grid.runs(tmp_path / "runs", tmp_path)
    for run in runs:
        right = numpy_rng.random(200) < (0.6 if run.cell.endswith("picture") else 0.3)
        counts = np.stack([right, 1 - right, np.full(200, 5), np.ones(200)], axis=-1)
        arrays = {word_outcomes.FILE: {kept_counts.ARRAY: np.float32(counts)}}
        if not run.cell.endswith(".text"):
            arrays |= sample_of("source", "picture")
        scores = {"exact_match": 100 * right.mean(), "chrf": 50.0, "bleu_1": 40.0}
        records.append(made_record(run, config=run.resolved(), arrays=arrays, **scores))
    archive.add(runs[0].records, records)
    page, *drawn = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    for name, path in zip(("maps", "attention"), drawn, strict=True):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert f"![{name}]({grid.name}/{name}.png)" in text
    assert "| German, text and picture | 3 |" in text and "| 50.00 ± 0.00 | 40.00 ± 0.00 |" in text
    start = "Differences from "
    alone, control = [part for part in text.split("\n## ") if part.startswith(start)]
    (row,) = [line for line in alone.splitlines() if "| Japanese | text and picture | +" in line]
    assert "| < 0.0" in row
    assert "| German | text and another's picture |" in alone
    assert "| into | system | exact match, against text and another's picture |" in control
    (row,) = [line for line in control.splitlines() if line.startswith("| German | text")]
    assert row.startswith("| German | text and picture | +") and "| < 0.0" in row
