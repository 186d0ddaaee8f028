"""Rationales are learnt from labels alone, and compared with the evidence of made-up reviews."""

import json

import numpy as np
import pytest

from attention_jax.data.tasks.rationalize import table
from attention_jax.runs.load import load_run
from experiments.kit import selected_words


@pytest.fixture(scope="module")
def run(launch, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("rationales") / "run"
    result = launch(
        "train", "--config=configs/lei2016.py:smoke", f"--workdir={workdir}",
        "--config.evaluation.splits=('test',)", "--config.training.evaluate_every_steps=200",
    )  # fmt: skip
    assert result.code == 0, result.err
    return workdir, result


def test_few_words_tell_the_label_and_they_are_the_evidence(run):
    workdir, result = run
    scores = json.loads((workdir / "results.json").read_text())["test"]
    assert scores["label_accuracy"] > 75.0 and 0.5 < scores["selected_share"] < 60.0
    assert scores["token_precision"] > 1.5 * scores["evidence_share"]
    assert "token_f1" in result.out and "collapsed" not in result.out
    logged = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert all(0.0 <= line["rationale/share"] <= 1.0 for line in logged if "loss" in line)


def test_what_is_right_of_selected_words_is_kept_for_comparisons(run):
    workdir, _ = run
    scores = json.loads((workdir / "results.json").read_text())["test"]
    with np.load(workdir / "resamples.test.npz") as kept:
        assert kept["token_f1"][1] == pytest.approx(scores["token_f1"])
    selected_words.record(load_run(workdir))
    with np.load(workdir / selected_words.FILE) as kept:
        both, chosen, marked, words, *_ = np.moveaxis(kept["counts"], -1, 0)
    assert both.shape == (64, 1) and np.all(both <= np.minimum(chosen, marked))
    assert 100 * chosen.sum() / words.sum() == pytest.approx(scores["selected_share"], rel=1e-3)


def test_the_page_underlines_what_was_selected(run):
    workdir, _ = run
    assert "<u>" in (workdir / "documents.test.html").read_text()


def test_a_collapse_is_one_line():
    assert table({"selected_share": 0.0}) == [
        "  collapsed: no words are selected (0.00 %); lower config.objectives.rationale.sparsity, "
        "or give a target_share beside it"
    ]
    assert "all words are selected (100.00 %); raise" in table({"selected_share": 100.0})[0]
    assert table({"selected_share": 20.0}) == []
