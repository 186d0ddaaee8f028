"""Rationales: what is right of a selection, and the statistics by which runs are compared."""

import numpy as np
import pytest

from attention_jax.data.builders.smoke_documents import Config
from attention_jax.data.decoded import DecodedSplit
from attention_jax.data.loading import build_task
from attention_jax.data.tasks import rationalize


@pytest.fixture(scope="module")
def decoded(tmp_path_factory):
    split = build_task(Config(), tmp_path_factory.mktemp("vocab")).split("validation")
    split = split.select(range(4))
    first = [np.arange(ids.size).reshape(ids.shape) < 5 for ids in split.columns["source"]]
    gathered = {"rationale": [each.astype(np.float32) for each in first]}
    return DecodedSplit(split, Config(), [], gathered=gathered)


def test_scores_and_statistics_agree(decoded):
    scores = rationalize.selected_words(decoded)
    found = rationalize.TASK.detail_statistics(decoded)
    assert {*found} == {"token_f1", "token_precision", "iou_f1"}
    for name, (rows, score) in found.items():
        assert len(rows) == 4 and score(rows.sum(axis=0)) == pytest.approx(scores[name])
    assert 0 < scores["token_precision"] < 100 and 0 < scores["selected_share"] < 100


def test_nothing_is_compared_without_outputs(decoded):
    nothing = DecodedSplit(decoded.split, decoded.data_config, [])
    assert rationalize.selection_statistics(nothing) == rationalize.selected_words(nothing) == {}
