"""Scores and resamples that records keep of a run."""

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from attention_jax.sweeps import archive
from experiments.kit import resampled_scores
from experiments.kit.variants import Variant, by_cell, grid_of
from tests.experiments.measured import made_record, resamples_of

SYSTEMS = {"plain": Variant("plain"), "other": Variant("other", {"seed": 2})}


def test_systems_are_left_out_whose_records_lack_a_metric(tmp_path):
    grid = grid_of("name", SYSTEMS, "here:usual", kept=resampled_scores.kept("bleu"))
    assert grid.kept == {"resamples.test.npz": ("bleu",)}
    runs = grid.runs(tmp_path / "runs", tmp_path)
    kept = {"resamples.test.npz": resamples_of(bleu=20.0)}
    archive.add(runs[0].records, [
        made_record(run, arrays=kept if run.name != "other/seed1" else {}) for run in runs
    ])  # fmt: skip
    cells = by_cell(runs)
    assert [*resampled_scores.keeping(cells, "bleu")] == ["plain"]
    assert resampled_scores.keeping(cells, "chrf") == {}
    assert resampled_scores.keeping(cells, "bleu", "new_speaker") == {}
    assert [run.keeps("resamples.test.npz") for run in cells["other"]] == [True, False, True]
    found = resampled_scores.of_run("bleu")(cells["plain"][0])
    assert found.score == 20.0 and len(found.draws) == seeds.RESAMPLES
    with pytest.raises(KeyError):
        resampled_scores.of_run("chrf")(cells["plain"][0])
    assert np.mean(found.draws) == pytest.approx(20.0)


def test_all_metrics_of_several_splits_can_be_kept():
    assert resampled_scores.kept(splits=("validation", "test")) == {
        "resamples.validation.npz": None, "resamples.test.npz": None,
    }  # fmt: skip
