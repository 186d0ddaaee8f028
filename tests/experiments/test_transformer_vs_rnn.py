import json

import pytest

from experiments import seeds
from experiments import transformer_vs_rnn as experiment
from tests.experiments.measured import alignments, translations, write_record


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_every_cell_has_a_config_of_its_own(tmp_path):
    runs = {run.cell: run for run in experiment.make_grid().runs(tmp_path, tmp_path)}
    decoders = {cell: run.resolved()["model"]["decoder"]["name"] for cell, run in runs.items()}
    assert decoders == {"recurrent": "bahdanau", "transformer": "transformer"}
    for cell, run in runs.items():
        assert f"--config=configs/{experiment.CONFIGS[cell]}.py:multi30k" in run.arguments()[0]


@pytest.mark.parametrize("is_aligned", [True, False])
def test_write_report_compares_both(tmp_path, numpy_rng, monkeypatch, is_aligned):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    runs = grid.runs(tmp_path / "runs", tmp_path)
    for run in runs:
        rate = 0.6 if run.cell == "recurrent" else 0.8
        measures = {"bleu": translations(numpy_rng, rate)}
        if is_aligned:
            measures["aer"] = alignments(numpy_rng, rate)
        write_record(run, measures)
        took = 30.0 * (run.seed + 2)
        lines = [
            {"step": 1, "split": "train", "steps_per_second": 10.0, "seconds/compute": took},
            {"step": 2, "split": "train", "steps_per_second": 9.0, "seconds/compute": 5000.0},
            {"step": 2, "split": "train", "steps_per_second": 10.0, "seconds/compute": took},
            {"step": 1, "split": "validation", "nll_per_sentence": 20.0},
            {"step": 2, "split": "validation", "nll_per_sentence": 10.0},
        ]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (run.record / experiment.METRICS).write_text(text)
    page, plot = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert plot.exists() and f"({plot.relative_to(tmp_path)})" in text
    assert "Only" not in text
    assert "| Transformer | 50.0 | 1,234 | 30 passes in batches of 128 | 1,280 | 3 |" in text
    assert ("AER is missing" in text) != is_aligned
    rows = [line for line in text.splitlines() if line.startswith("| Transformer | +")]
    assert len(rows) == 1
    assert "9 of 9" in rows[0]  # BLEU is higher with every pair of seeds
