"""Coverage embeddings, final coverage, global fertility and freezing in one small training."""

import json
import os
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "launch.train", "--config=configs/mi2016.py:smoke"]


def launch(workdir, *arguments):
    return subprocess.run(
        [*COMMAND, f"--workdir={workdir}", *arguments],
        capture_output=True, text=True, timeout=900, env=dict(os.environ),
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("mi2016") / "run"
    result = launch(
        workdir,
        "--config.training.num_steps=300",
        "--config.evaluation.splits=('test',)",
        "--config.evaluation.num_heat_maps=0",
        "--config.training.freezing.parameters=('coverage_table',)",
        "--config.training.freezing.start_steps=250",
        "--config.model.predictors.fertility.hidden_dim=8",
        "--config.objectives.global_fertility.weight=0.1",
        "--config.objectives.global_fertility.schedule.start_steps=50",
    )
    assert result.returncode == 0, result.stderr
    return workdir


def test_training_learns_the_task(run):
    results = json.loads((run / "results.json").read_text())
    assert results["test"]["accuracy"] > 0.95 and results["test"]["bleu"] > 85.0


def test_training_lowers_both_objectives(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    train = [line for line in lines if line["split"] == "train"]
    assert train[-1]["loss/final_coverage"] < 0.7 * train[0]["loss/final_coverage"]
    assert train[-1]["loss/global_fertility"] < train[0]["loss/global_fertility"] - 0.3
    assert train[0]["weight/global_fertility"] < train[-1]["weight/global_fertility"]


def test_a_pattern_that_freezes_nothing_is_one_line(tmp_path):
    result = launch(tmp_path / "run", "--config.training.freezing.parameters=('coverage_tabel',)")
    assert result.returncode == 2 and "Traceback" not in result.stderr
    assert result.stderr.splitlines()[-1].endswith(
        "config.training.freezing.parameters[0]: expected a pattern that is found in a "
        "parameter's path, such as decoder/attention/coverage_kernel, found 'coverage_tabel'"
    )
