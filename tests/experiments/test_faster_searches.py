"""Faster searches: what a run's searches are compared by, and the page."""

import subprocess
import sys

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from attention_jax.runs.config import from_config_dict
from attention_jax.search import SearchConfig
from attention_jax.sweeps import archive
from experiments import faster_searches as experiment
from experiments.kit import search_record
from tests.experiments.measured import made_record, shares, translations


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_every_run_has_the_lexicon_that_its_searches_ask_for(tmp_path):
    runs = experiment.make_grid().runs(tmp_path, tmp_path)
    assert len(runs) == 6
    wanted = max(SearchConfig(**each.overrides).shortlist
                 for each in search_record.SEARCHES.values())  # fmt: skip
    for run in runs:
        assert from_config_dict(run.resolved()).data.lexicon.size >= wanted


def test_the_page_compares_each_search_with_the_exact_one(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.cell == "recurrent"]
    records = []
    for run in runs:
        exact = translations(numpy_rng, 0.6)
        kept = {}
        for name in search_record.SEARCHES:
            worse = translations(numpy_rng, 0.3) if name == "shortlist_10" else exact
            kept[f"{name}.bleu"] = np.float32(worse.counts)
            kept[f"{name}.changed"] = np.float32(shares(numpy_rng, "changed", 0.25).counts)
        records.append(made_record(run, bleu=30.0, arrays={search_record.FILE: kept}))
    archive.add(runs[0].records, records)
    (page,) = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert "Only 3 of 6 runs" in text
    _, differences = text.split("## Differences")
    same, worse = (
        next(line for line in differences.splitlines() if line.startswith(f"| {label}"))
        for label in ("int8, all words", "float32, 10 translations")
    )
    assert "0.00" in same
    assert "−" in worse or "-" in worse


def test_smoke_program_trains_searches_and_tabulates(repository, python_environment, tmp_path):
    command = [sys.executable, "-m", f"experiments.{experiment.NAME}", "--smoke",
               "--only=transformer", f"--runs={tmp_path}"]  # fmt: skip
    done = subprocess.run(
        command, cwd=repository, env=python_environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    grid = experiment.make_grid(smoke=True)
    [run] = [run for run in grid.runs(tmp_path, tmp_path / "smoke_results") if run.is_finished()]
    measured = search_record.of_run(run)
    assert {*measured} == {*search_record.SEARCHES}
    assert not measured[search_record.EXACT][search_record.CHANGED].counts[:, 0].any()
    page = (tmp_path / "smoke_results" / f"{grid.name}.md").read_text()
    assert "| int8, all words | 1 |" in page and "Only 1 of 2 runs" in page
