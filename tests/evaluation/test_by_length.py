"""BLEU by source length: who falls into which bucket."""

import pytest
from sacrebleu.metrics import BLEU

from attention_jax.evaluation.by_length import bleu_by_length
from tests.evaluation.sentences import noisy, sentences


def test_bleu_by_length_sorts_by_words_of_the_source():
    sources = [" ".join("w" * words) for words in (1, 10, 11, 20, 35, 60, 61, 200)]
    targets = ["a b c d e f"] * len(sources)
    buckets = bleu_by_length(sources, targets, [[text] for text in targets], resamples=5)
    assert [(bucket.label, bucket.sentences) for bucket in buckets] == [
        ("1-10", 2), ("11-20", 2), ("31-40", 1), ("51-60", 1), (">60", 2),
    ]  # fmt: skip
    assert all(bucket.bleu == pytest.approx(100) for bucket in buckets)
    assert buckets[-1].last is None and buckets[-1].first == 61


def test_bleu_by_length_respects_width_and_number_of_buckets():
    sources = [" ".join("w" * words) for words in (0, 5, 6, 10, 11, 99)]
    targets = ["a b c d"] * len(sources)
    buckets = bleu_by_length(
        sources, targets, [[text] for text in targets], width=5, buckets=2, resamples=5
    )
    assert [(bucket.label, bucket.sentences) for bucket in buckets] == [
        ("1-5", 2), ("6-10", 2), (">10", 2),
    ]  # fmt: skip


def test_bleu_by_length_is_the_corpus_bleu_of_each_bucket():
    references = sentences(80)
    hypotheses = noisy(references, 0.25)
    buckets = bleu_by_length(references, hypotheses, [[text] for text in references])
    assert sum(bucket.sentences for bucket in buckets) == 80
    for bucket in buckets:
        chosen = [
            index for index, text in enumerate(references)
            if bucket.first <= len(text.split()) <= bucket.last
        ]  # fmt: skip
        expected = BLEU().corpus_score(
            [hypotheses[index] for index in chosen], [[references[index] for index in chosen]]
        )
        assert bucket.sentences == len(chosen)
        assert bucket.bleu == pytest.approx(expected.score)
        assert bucket.low < bucket.bleu < bucket.high
