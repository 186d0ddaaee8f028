"""Captioning: attention in gold rectangles, and the statistics by which it is compared."""

import dataclasses

import numpy as np
import pytest

from attention_jax.data.builders.formulas import Config
from attention_jax.data.captions import GOLD_BOXES, PICTURE
from attention_jax.data.decoded import DecodedSplit
from attention_jax.data.examples import Split
from attention_jax.data.tasks import caption
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.decoding.searcher import Hypothesis

CONFIG = Config(height=48, cell=16)  # three cells a column


@pytest.fixture
def decoded():
    """Three pictures of two columns; the outputs of all but the second are right."""
    texts = ["a b", "b", "b"]
    vocabulary = SymbolVocabulary.train("symbols", texts)
    cell, nowhere = [0, 0, 16, 16], [0, 0, 0, 0]
    split = Split(
        ["one", "two", "three"], texts, references=[[text] for text in texts], numbers=[0, 1, 2],
        name="test", source_vocabulary=vocabulary, target_vocabulary=vocabulary,
        extras={
            PICTURE.name: [np.zeros((6, 256), np.uint8)] * 3,
            GOLD_BOXES: [np.array([cell, [16, 16, 32, 48]]), np.array([cell]), np.array([nowhere])],
        },
    )  # fmt: skip
    rows = np.zeros((3, 6), np.float32)
    rows[:, 0], rows[:, 4] = [0.5, 0.75, 1.0], [0.5, 0.25, 0.0]
    outputs = [split.target_ids[0], split.target_ids[0], split.target_ids[2]]
    found = [[Hypothesis(ids, 0.0, 0.0, rows[: len(ids)])] for ids in outputs]
    return DecodedSplit(split, CONFIG, ["a b", "a b", "b"], [], found, True)


def test_attention_in_gold_rectangles_is_compared_by_the_captions_that_are_right(decoded):
    scores = caption.attention_scores(decoded)
    assert scores["attention_in_gold"] == pytest.approx(37.5)
    assert scores["attention_in_gold_outputs"] == 2
    rows, score = caption.TASK.detail_statistics(decoded)["attention_in_gold"]
    np.testing.assert_allclose(rows, [[0.75, 2], [0, 0], [0, 0]])
    assert score(rows.sum(axis=0)) == pytest.approx(scores["attention_in_gold"])
    assert score(np.zeros(2)) == 0  # of a resample without any


def test_attention_in_gold_rectangles_is_that_of_the_step_that_links(decoded):
    later = [
        [dataclasses.replace(one, weights=np.roll(one.weights, 1, axis=0))]
        for one, in decoded.hypotheses
    ]  # fmt: skip
    shifted = dataclasses.replace(decoded, hypotheses=later, alignment_shift=1)
    assert caption.attention_scores(shifted)["attention_in_gold"] == pytest.approx(37.5)
    rows, _ = caption.gold_statistics(shifted)["attention_in_gold"]
    np.testing.assert_allclose(rows, [[0.75, 2], [0, 0], [0, 0]])


def test_nothing_is_compared_without_rectangles(decoded):
    extras = {PICTURE.name: decoded.split.extras[PICTURE.name]}
    split = dataclasses.replace(decoded.split, extras=extras)
    assert caption.gold_statistics(dataclasses.replace(decoded, split=split)) == {}
    assert caption.gold_statistics(dataclasses.replace(decoded, attends=False)) == {}
    wrong = dataclasses.replace(decoded, hypotheses=[[]] * 3)
    assert caption.gold_statistics(wrong) == {}
    assert "attention_in_gold" not in caption.attention_scores(wrong)
