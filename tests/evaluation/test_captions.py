"""Scores of captions against sacrebleu."""

import pytest
from sacrebleu.metrics import BLEU, CHRF

from attention_jax.evaluation.captions import caption_scores

CAPTIONS = ["a brown dog runs over the grass", "two cats sit here", "a man"]
REFERENCES = [
    ["a brown dog runs on the grass", "the dog runs over grass"],
    ["two cats sit on a mat", "two cats sit here"],
    ["a man walks", "some man there"],
]


def test_scores_are_those_of_sacrebleu():
    found = caption_scores(CAPTIONS, REFERENCES)
    streams = [*map(list, zip(*REFERENCES, strict=True))]
    for order in range(1, 5):
        expected = BLEU(max_ngram_order=order).corpus_score(CAPTIONS, streams).score
        assert found[f"bleu_{order}"] == pytest.approx(expected)
    assert found["chrf"] == pytest.approx(CHRF().corpus_score(CAPTIONS, streams).score)
    assert found["exact_match"] == pytest.approx(100 / 3)
