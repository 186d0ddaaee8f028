"""Copying: the cells of the grid are configs, and the page is made of their records."""

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from attention_jax.models import build_model
from attention_jax.runs.config import from_config_dict
from attention_jax.sweeps import archive
from experiments import copying as experiment
from experiments.kit import kept_counts, program_outcomes, variants
from experiments.kit.program_outcomes import ProgramOutcomes
from tests.experiments.measured import made_record


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_every_cell_is_a_config_and_a_model(tmp_path):
    runs = experiment.make_grid().runs(tmp_path, tmp_path)
    assert len(runs) == 2 * len(experiment.SYSTEMS) * len(variants.SEEDS)
    for run in runs[: 2 * len(experiment.SYSTEMS)]:
        config = from_config_dict(run.resolved())
        model = build_model(config.model, 50, 40)
        copies = not run.cell.endswith(("words", "replaced", "subwords"))
        assert ("origins" in model.provides) == copies
        assert config.task.label == "code"
        assert ("coverage_loss" in config.objectives) == run.cell.endswith("coverage")
        if "coverage_loss" in config.objectives:
            schedule = config.objectives["coverage_loss"].schedule
            assert 0.7 < schedule.start_steps / config.training.num_steps < 0.9


def test_recall_is_of_rare_words():
    outcomes = ProgramOutcomes(np.array([[1, 1, 2, 2], [0, 1, 0, 2], [1, 1, 0, 0]], float))
    assert outcomes.score(outcomes.counts.sum(axis=0)) == pytest.approx(200 / 3)
    assert outcomes.rare_word_recall == 50.0


def test_the_page_compares_with_replacement(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.cell.startswith("django")]
    records = []
    for run in runs:
        is_right = numpy_rng.random(200) < (0.9 if run.cell.endswith("copynet") else 0.5)
        counts = np.stack([is_right, is_right | True, is_right, is_right | True], axis=-1)
        records.append(made_record(
            run, config=run.resolved(), exact_match=100 * is_right.mean(), bleu=12.5,
            arrays={program_outcomes.FILE: {kept_counts.ARRAY: np.float32(counts)}},
        ))  # fmt: skip
    archive.add(runs[0].records, records)
    (page,) = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    (row,) = [line for line in text.splitlines() if line.startswith("| Django | CopyNet | +")]
    assert "| < 0.0" in row
    assert "| pointer-generator, coverage |" in text and "12.50 ± 0.00" in text
    assert "1,234" in text and "Hearthstone |" not in text
