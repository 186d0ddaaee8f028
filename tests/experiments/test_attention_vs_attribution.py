"""Attention against attribution: the systems of the grid, the measures of a run, and the page."""

import subprocess
import sys

import numpy as np
import pytest

from attention_jax.analysis.attribution import ATTRIBUTIONS
from attention_jax.analysis.gold_links import GoldLinks, compare_with_gold
from attention_jax.evaluation import seeds
from attention_jax.evaluation.pharaoh import marked_links
from attention_jax.evaluation.word_weights import WordWeights
from attention_jax.models import build_model
from attention_jax.runs.config import from_config_dict
from attention_jax.sweeps import archive
from attention_jax.types import AttributableModel
from experiments import attention_vs_attribution as experiment
from experiments.kit import attribution_record, sentence_measures
from tests.experiments.measured import alignments, made_record, shares
from tests.training.untrained import untrained_run, write_text

METHODS = ATTRIBUTIONS.names()


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_systems_are_those_with_coverage_or_supervision(tmp_path):
    runs = experiment.make_grid().runs(tmp_path, tmp_path)
    assert len(runs) == 54 and len({run.cell for run in runs}) == 18
    configs = [from_config_dict(run.resolved()) for run in runs if run.seed == 0]
    taught = [config for config in configs if "supervised_alignment" in config.objectives]
    assert len(taught) == 9
    assert all(config.data.max_train_examples != 4000 for config in configs)
    for config in configs:
        assert isinstance(build_model(config.model, 50, 60), AttributableModel)


def test_words_that_both_link_are_counted():
    attention = np.array([[0.9, 0.1], [0.2, 0.8], [0, 0], [0.7, 0.3]])
    other = np.array([[0.6, 0.4], [0.6, 0.4], [0.5, 0.5], [0, 0]])
    both = WordWeights.of(attention), WordWeights.of(other)
    assert attribution_record.agreement(*both) == (1, 2)


def test_attention_is_measured_as_evaluation_measures_it(tmp_path, monkeypatch):
    run, task = untrained_run(tmp_path / "run", *write_text(tmp_path))
    split = task.split("test")
    sizes = {number: len(split.sources[number].split()) for number in (7, 2, 11)}
    gold = GoldLinks({n: marked_links((w, w) for w in range(s)) for n, s in sizes.items()})
    # Compiled in a second; a run below has all of them.
    monkeypatch.setattr(ATTRIBUTIONS, "names", lambda: ["value_norms"])
    counts = attribution_record.measure(run, split, gold)
    assert {*counts} == {"attention.aer", "value_norms.aer", "value_norms.agreement"}
    error = sentence_measures.MEASURES["aer"].score(counts["attention.aer"].sum(0))
    expected = compare_with_gold(run, split, gold).scores()["aer"]
    np.testing.assert_allclose(error, expected)
    targets = sum(len(split.targets[number].split()) for number in sizes)
    named, words = counts["value_norms.agreement"].sum(0)
    assert 0 < named <= words <= targets


def test_the_page_compares_each_attribution_with_attention(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    chosen = ("base", "neural", "ce_hmm")
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.cell in chosen]
    records = []
    for run in runs:
        rates = {"attention": 0.6, **dict.fromkeys(METHODS, 0.6), "occlusion": 0.95}
        arrays = {f"{name}.aer": alignments(numpy_rng, rate) for name, rate in rates.items()}
        arrays |= {f"{name}.agreement": shares(numpy_rng, "agreement", 0.5) for name in METHODS}
        kept = {name: np.float32(measure.counts) for name, measure in arrays.items()}
        records.append(made_record(run, bleu=30.0, arrays={attribution_record.FILE: kept}))
    archive.add(runs[0].records, records)
    (page,) = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert "Only 9 of 54 runs" in text
    errors, agreement = text.split("## Agreement with attention")
    for table in (errors, agreement):
        rows = [line for line in table.splitlines() if line.startswith("| neural coverage |")]
        assert len(rows) == 1
    headings = next(line for line in errors.splitlines() if line.startswith("| system |"))
    cells = [cell.strip() for cell in next(
        line for line in errors.splitlines() if line.startswith("| neural coverage |")
    ).split("|")]  # fmt: skip
    place = [cell.strip() for cell in headings.split("|")].index("occlusion")
    assert cells[place].endswith("**") and not cells[place - 3].endswith("*")


def test_smoke_program_trains_measures_and_tabulates(repository, python_environment, tmp_path):
    command = [sys.executable, "-m", f"experiments.{experiment.NAME}", "--smoke",
               "--only=neural", f"--runs={tmp_path}"]  # fmt: skip
    done = subprocess.run(
        command, cwd=repository, env=python_environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    grid = experiment.make_grid(smoke=True)
    [run] = [run for run in grid.runs(tmp_path, tmp_path / "smoke_results") if run.is_finished()]
    measured = attribution_record.of_run(run)
    assert [*measured] == METHODS  # without gold links, attention has nothing of its own
    for name in METHODS:
        assert [*measured[name]] == ["agreement"]
        counts = measured[name]["agreement"].counts
        assert len(counts) == 100 and np.all(counts[:, 0] <= counts[:, 1]) and counts.any()
    page = (tmp_path / "smoke_results" / f"{grid.name}.md").read_text()
    assert "| neural coverage | 1 |" in page and "Only 1 of 2 runs" in page
