import re
import subprocess
import sys

import pytest

from attention_jax.evaluation import seeds
from attention_jax.evaluation.bleu import FIELDS
from experiments import bahdanau2015_length as experiment
from experiments.kit import sentence_bleu
from experiments.kit.joined_sentences import CAVEAT, NUMBERS
from experiments.kit.sentence_bleu import SentenceBleu
from tests.experiments.measured import made_record, write_records

SPLITS = ("test", *(f"joined_{number}" for number in NUMBERS))


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


@pytest.fixture
def records(tmp_path, numpy_rng, monkeypatch):
    """Records of all runs, as if every system had got a certain share of the n-grams right."""
    monkeypatch.setattr(seeds, "RESAMPLES", 200)

    def make(quality, seeds=(0, 1, 2)):
        grid = experiment.make_grid()
        runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.seed in seeds]
        words = numpy_rng.integers(4, 26, 200)
        records = []
        for run in runs:
            share = quality[run.cell] + 0.002 * run.seed
            sentences = _sentences(numpy_rng, words, share)
            arrays = {sentence_bleu.FILE: sentence_bleu.arrays(dict.fromkeys(SPLITS, sentences))}
            records.append(made_record(run, bleu=sentences.bleu, arrays=arrays))
        write_records(runs, records)
        return grid, runs

    return make


def _sentences(numpy_rng, words, share):
    counts = numpy_rng.integers(0, 1, (len(words), FIELDS)).astype(float)
    counts[:, 0] = counts[:, 1] = words
    for order in range(4):
        totals = words - order
        counts[:, 6 + order] = totals
        counts[:, 2 + order] = numpy_rng.binomial(totals, share ** (order + 1))
    return SentenceBleu(words, counts)


QUALITY = {"attention_all": 0.8, "attention_short": 0.7, "fixed_all": 0.6, "fixed_short": 0.5}


def test_systems_differ_in_attention_and_length_of_training_sentences_only(tmp_path):
    runs = experiment.make_grid().runs(tmp_path, tmp_path)
    assert len(runs) == 12
    configs = {run.cell: run.resolved() for run in runs if run.seed == 0}
    for config in configs.values():
        config["model"].pop("attention")
        config["data"].pop("max_train_source_words")
    assert len(configs) == 4
    assert all(config == configs["fixed_all"] for config in configs.values())


def test_write_report_has_our_numbers_beside_the_papers(records, tmp_path):
    grid, runs = records(QUALITY)
    page, *plots = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    for run in runs:
        assert f"{run.results()['test']['bleu']:.2f}" in text
    for number in ("13.93", "21.50", "17.82", "26.75", "+3.68"):
        assert number in text
    assert "Only" not in text
    assert text.count(CAVEAT) == 1 and CAVEAT in text.split("length, joined")[1]
    for plot in plots:
        assert plot.read_bytes().startswith(b"\x89PNG")
        assert f"({plot.relative_to(tmp_path)})" in text


def test_write_report_tests_every_claim(records, tmp_path):
    grid, runs = records(QUALITY)
    page = experiment.write_report(grid, runs, tmp_path)[0].read_text()
    rows = re.findall(r"^\| (?:attention|fixed).* – .*\|$", page, re.MULTILINE)
    assert len(rows) == len(experiment.CLAIMS)
    assert all("| +" in row and "| 9 of 9 |" in row and "| < 0.010 |" in row for row in rows)


def test_write_report_shows_a_claim_that_fails(records, tmp_path):
    grid, runs = records({**QUALITY, "attention_short": 0.55})
    page = experiment.write_report(grid, runs, tmp_path)[0].read_text()
    (row,) = re.findall(r"^\| attention, short only – fixed vector, all.*\|$", page, re.MULTILINE)
    assert "| -" in row and "| 0 of 9 |" in row


def test_write_report_says_that_runs_are_missing(records, tmp_path):
    grid, runs = records(QUALITY, seeds=(0,))
    kept = [run for run in runs if run.cell != "fixed_short"]
    page = experiment.write_report(grid, kept, tmp_path)[0].read_text()
    assert "Only 3 of 12 runs" in page
    assert "13.93" not in page



def test_smoke_program_trains_tabulates_and_skips(repository, python_environment, tmp_path):
    def program(*options):
        command = [sys.executable, "-m", f"experiments.{experiment.NAME}", "--smoke", *options]
        done = subprocess.run(
            [*command, f"--runs={tmp_path}"],
            cwd=repository, env=python_environment, capture_output=True, text=True, timeout=1500,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    shown = program("--only=attention_short")
    assert "attention_short/seed0: finished in" in shown
    assert "1 of 1 finished" in shown
    run = experiment.make_grid(smoke=True).runs(tmp_path, tmp_path / "smoke_results")[0]
    assert run.record().config == run.resolved()
    assert set(run.results()) == set(SPLITS)
    assert run.facts()["num_train_pairs"] == 2048
    for split in SPLITS:
        bleu = sentence_bleu.of_run(run, split).bleu
        assert bleu == pytest.approx(run.results()[split]["bleu"], abs=1e-6)
    page = tmp_path / "smoke_results" / f"{run.grid.name}.md"
    assert "Only 1 of 4 runs" in page.read_text()
    page.unlink()
    assert "The run is finished." in program("--only=attention_short")
    assert page.exists()
