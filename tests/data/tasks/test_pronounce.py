import dataclasses

import numpy as np
import pytest

from attention_jax.data.builders.cmudict import Config as CmudictConfig
from attention_jax.data.loading import build_task
from attention_jax.data.tasks import pronounce
from attention_jax.data.tasks.translate import attention_scores
from attention_jax.types import SpecialIds

CONFIG = CmudictConfig()


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return build_task(CONFIG, tmp_path_factory.mktemp("vocab"))


def test_trains_on_every_variant(task):
    train = task.split("train")
    rows = [index for index, word in enumerate(train.sources) if word == "tomato"]
    assert len(rows) == 2
    assert [train.targets[index] for index in rows] == train.references[rows[0]]
    assert len(train) > len(set(train.sources))


def test_evaluates_every_word_once(task):
    for name in ("validation", "test"):
        split = task.split(name)
        assert len(split) == len(set(split.sources))
        assert all(
            target == accepted[0]
            for target, accepted in zip(split.targets, split.references, strict=True)
        )
        assert max(map(len, split.references)) > 1


def test_has_letters_and_phonemes(task):
    assert task.task is pronounce.TASK and task.task.label == "pronunciation"
    assert task.source_vocabulary.size == SpecialIds.COUNT + 29
    assert task.target_vocabulary.size == SpecialIds.COUNT + 69
    test = task.split("test")
    assert task.target_vocabulary.decode(test.target_ids[5]) == test.targets[5]
    assert task.source_vocabulary.decode(test.source_ids[5]) == test.sources[5]
    assert test.source_ids[5].dtype == np.int32
    assert test.source_ids[5][-1] == test.target_ids[5][-1] == SpecialIds.EOS


def test_words_are_listed_in_lower_case_and_phonemes_are_not():
    assert pronounce.TASK.prepare(" Dog\n", CONFIG) == "dog"
    assert pronounce.TASK.prepare(" D AO1 G\n", CONFIG, is_source=False) == "D AO1 G"


def test_scores_accept_any_variant(task):
    split = dataclasses.replace(
        task.split("test").select([0, 1]), references=[["AH0 B", "EY1 B"], ["K AE1 T"]]
    )
    outputs = ["EY1 B", "K AE2 T"]
    scores = pronounce.scores(split, outputs, CONFIG)
    assert (scores["wer"], scores["wer_no_stress"], scores["per"]) == (50.0, 0.0, 20.0)
    for name, (rows, score) in pronounce.statistics(split, outputs, CONFIG).items():
        corpus = score(rows.sum(axis=0, keepdims=True))
        assert corpus == pytest.approx(scores[name])
    assert {metric.name for metric in pronounce.TASK.metrics} <= {*scores}
    assert pronounce.TASK.details == (attention_scores,)
