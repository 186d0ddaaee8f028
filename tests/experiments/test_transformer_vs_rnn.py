
import pytest

from attention_jax.evaluation import seeds
from experiments import transformer_vs_rnn as experiment
from tests.experiments.measured import alignments, made_record, translations, write_records


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_every_cell_has_a_config_of_its_own(tmp_path):
    runs = {run.cell: run for run in experiment.make_grid().runs(tmp_path, tmp_path)}
    decoders = {cell: run.resolved()["model"]["decoder"]["name"] for cell, run in runs.items()}
    assert decoders == {"recurrent": "bahdanau", "transformer": "transformer"}
    for cell, run in runs.items():
        config = f"configs/{experiment.SYSTEMS[cell].config}.py:multi30k"
        assert f"--config={config}" in run.arguments()[0]


@pytest.mark.parametrize("is_aligned", [True, False])
def test_write_report_compares_both(tmp_path, numpy_rng, monkeypatch, is_aligned):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    runs = grid.runs(tmp_path / "runs", tmp_path)
    records = []
    for run in runs:
        rate = 0.6 if run.cell == "recurrent" else 0.8
        measures = {"bleu": translations(numpy_rng, rate)}
        if is_aligned:
            measures["aer"] = alignments(numpy_rng, rate)
        curves = {
            "steps_per_second": {"train": [[1, 2], [10.0, 10.0]]},
            "seconds/compute": {"train": [[1, 2], [30.0 * (run.seed + 2)] * 2]},
            "nll_per_sentence": {"validation": [[1, 2], [20.0, 10.0]]},
        }
        records.append(made_record(run, measures, curves=curves, config=run.resolved()))
    write_records(runs, records)
    page, plot = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert plot.exists() and f"({plot.relative_to(tmp_path)})" in text
    assert "Only" not in text
    assert "| Transformer | 50.0 | 1,234 | 30 passes in batches of 128 | 1,280 | 3 |" in text
    assert ("AER is missing" in text) != is_aligned
    rows = [line for line in text.splitlines() if line.startswith("| Transformer | +")]
    assert len(rows) == 1
    assert "9 of 9" in rows[0]  # BLEU is higher with every pair of seeds
