import numpy as np
import pytest

from attention_jax.data.builders.smoke_documents import Config
from attention_jax.data.decoded import DecodedSplit
from attention_jax.data.loading import build_task
from attention_jax.data.tasks import classify
from attention_jax.data.text.symbol_kinds import SENTENCE_BREAK
from attention_jax.errors import DataError


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    task = build_task(Config(), tmp_path_factory.mktemp("vocab"))
    return task.split("validation").select(range(4))


def test_texts_of_users_are_brought_into_the_form_of_the_data():
    config = Config()
    prepared = classify.prepare_document("A film. Very Good.\r\n", config)
    assert prepared == f"a film.{SENTENCE_BREAK}very good."
    assert classify.prepare_document(" \n", config).strip() == ""
    assert classify.prepare_document("POS\n", config, is_source=False) == "pos"
    with pytest.raises(DataError, match="text: expected at most 100000 characters"):
        classify.prepare_document("a" * 100_001, config)


def test_scores_table_and_statistics_agree(split):
    config, right = Config(), list(split.targets)
    wrong = ["neg" if label == "pos" else "pos" for label in right]
    half = right[:2] + wrong[2:]
    assert classify.scores(split, right, config)["label_accuracy"] == 100.0
    assert classify.scores(split, half, config)["label_accuracy"] == 50.0
    details = classify.label_scores(DecodedSplit(split, config, right))
    lines = classify.table(details)
    assert len(lines) == 1 + len(set(right)) and "100.00" in lines[1]
    assert classify.table({"bleu": 1.0}) == []
    rows, score = classify.statistics(split, half, config)["label_accuracy"]
    np.testing.assert_allclose(score(rows.sum(0)), 50.0)
