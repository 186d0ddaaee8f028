"""Captions: the cells of the grid, and the page of records."""

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from attention_jax.runs.config import from_config_dict
from attention_jax.sweeps import archive
from experiments import captions as experiment
from experiments.kit import gold_areas, kept_counts, word_outcomes
from tests.experiments.measured import made_record, resamples_of, sample_of


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_a_cell_is_a_config(tmp_path):
    runs = experiment.make_grid().runs(tmp_path, tmp_path)
    assert len(runs) == 30
    configs = {run.cell: from_config_dict(run.resolved()) for run in runs if run.seed == 0}
    assert {config.task.label for config in configs.values()} == {"captions"}
    assert configs["emoji_picture.soft"].data.split_by == "picture"
    assert set(configs["formulas.hard"].objectives) >= {"reinforce", "attention_entropy"}
    assert set(configs["formulas.soft"].objectives) == {"nll"}
    assert set(configs["formulas.supervised"].objectives) == {"nll", "supervised_alignment"}
    assert not {"emoji_base.supervised", "emoji_picture.supervised"} & set(configs)
    assert set(configs["formulas.doubly_stochastic"].objectives) == {"nll", "coverage_penalty"}


def test_the_page_has_what_each_data_set_measures(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    chosen = ("formulas.", "emoji_base.")
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.cell.startswith(chosen)]
    records = []
    for run in runs:
        is_right = numpy_rng.random(200) < (0.6 if run.cell.endswith(".soft") else 0.9)
        counts = np.stack([is_right, 1 - is_right, 0 * is_right + 5, 0 * is_right + 1], axis=-1)
        is_gold, more = run.cell.startswith("formulas"), {}
        areas = np.full((200, 2), is_gold, np.float32) * [0.125, 1]
        kept = {word_outcomes.FILE: {kept_counts.ARRAY: np.float32(counts)},
                gold_areas.FILE: {kept_counts.ARRAY: np.float32(areas)}}  # fmt: skip
        if is_gold:
            share = 72.5 if run.cell.endswith(".soft") else 60.0
            kept["resamples.test.npz"] = resamples_of(attention_in_gold=share)
            more["attention_in_gold"] = 72.5
        records.append(made_record(
            run, config=run.resolved(), exact_match=100 * is_right.mean(), bleu_1=80.0, **more,
            arrays={**kept, **sample_of("picture")},
        ))  # fmt: skip
    archive.add(runs[0].records, records)
    page, picture = experiment.write_report(grid, runs, tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"## Where each word looked\n\n![attention]({grid.name}/attention.png)" in (
        page.read_text()
    )
    of_formulas, of_emoji = page.read_text().split("## Emoji whose base is new")
    assert "| chrF | attention in gold rectangles | the same of even attention |" in of_formulas
    assert "| attention | exact match | BLEU-1 | chrF |" in of_formulas
    assert "| 72.50 ± 0.00 | 12.50 ± 0.00 |" in of_formulas
    assert "| attention | exact match | BLEU-1 | chrF |\n" in of_emoji
    (row,) = [line for line in of_emoji.splitlines() if line.startswith("| formulas | hard | +")]
    assert "| < 0.0" in row
    assert "attention in gold rectangles, against soft" in of_emoji
    (row,) = [line for line in of_emoji.splitlines() if line.startswith("| formulas | hard | -")]
    assert row.startswith("| formulas | hard | -12.50 |") and "| < 0.0" in row


def test_a_page_of_records_without_samples_has_no_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.seed < 2]
    kept = {word_outcomes.FILE: {kept_counts.ARRAY: np.ones((5, 4), np.float32)}}
    archive.add(runs[0].records, [made_record(run, arrays=kept) for run in runs])
    (page,) = experiment.write_report(grid, runs, tmp_path)
    assert "Where each word looked" not in page.read_text()
    assert "attention in gold rectangles, against soft" not in page.read_text()
