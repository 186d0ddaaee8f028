"""Coverage embeddings, final coverage, global fertility and freezing in one small training."""

import json

import pytest

CONFIG = "--config=configs/mi2016.py:smoke"


@pytest.fixture(scope="module")
def run(launch, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("mi2016") / "run"
    ended = launch(
        "train", CONFIG, f"--workdir={workdir}",
        "--config.training.num_steps=300",
        "--config.evaluation.splits=('test',)",
        "--config.evaluation.num_heat_maps=0",
        "--config.training.freezing.parameters=('coverage_table',)",
        "--config.training.freezing.start_steps=250",
        "--config.model.predictors.fertility.hidden_dim=8",
        "--config.objectives.global_fertility.weight=0.1",
        "--config.objectives.global_fertility.schedule.start_steps=50",
    )  # fmt: skip
    assert ended.code == 0, ended.err
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


def test_a_pattern_that_freezes_nothing_is_one_line(launch, tmp_path):
    pattern = "--config.training.freezing.parameters=('coverage_tabel',)"
    ended = launch("train", CONFIG, f"--workdir={tmp_path / 'run'}", pattern)
    assert ended.code == 2 and "Traceback" not in ended.err
    assert ended.err.splitlines()[-1].endswith(
        "config.training.freezing.parameters[0]: expected a pattern that is found in a "
        "parameter's path, such as decoder/attention/coverage_kernel, found 'coverage_tabel'"
    )
