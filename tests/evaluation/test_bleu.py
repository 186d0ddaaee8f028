"""BLEU from sufficient statistics against sacrebleu and a case counted by hand."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from attention_jax.evaluation.bleu import bleu_from_statistics, bleu_resamples, bleu_statistics
from tests.evaluation.sentences import noisy, sentences


def test_bleu_golden():
    statistics = bleu_statistics(
        ["the cat sat on the mat today", "the cat sat on the"], [["the cat sat on the mat"]] * 2
    )
    np.testing.assert_array_equal(statistics[0], [7, 6, 6, 5, 4, 3, 7, 6, 5, 4])
    np.testing.assert_allclose(bleu_from_statistics(statistics), [80.910671, 81.873075], rtol=1e-7)


@pytest.mark.parametrize("number", [1, 2, 5, 40])
@pytest.mark.parametrize("error", [0.0, 0.3, 0.7, 0.97])
def test_bleu_from_statistics_equals_sacrebleu(number, error):
    for seed in range(5):
        references = sentences(number, seed, longest=8)
        hypotheses = noisy(references, error, seed)
        expected = BLEU().corpus_score(hypotheses, [references]).score
        statistics = bleu_statistics(hypotheses, [[reference] for reference in references])
        got = bleu_from_statistics(statistics.sum(axis=0))
        assert got == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("hypothesis", ["", "zebra", "zebra zebra zebra zebra zebra"])
def test_bleu_without_a_match_is_zero(hypothesis):
    statistics = bleu_statistics([hypothesis], [["the cat sat on the mat"]])
    assert bleu_from_statistics(statistics[0]) == 0


def test_bleu_statistics_respect_tokenizer_and_case():
    def score(**options):
        rows = bleu_statistics(["The cat, sat."], [["the cat , sat ."]], **options)
        return float(bleu_from_statistics(rows[0]))

    assert score(lowercase=True) == pytest.approx(100)
    assert score() < 100
    assert score(lowercase=True, tokenize="none") < 100


def test_bleu_resamples_repeat_with_their_seed():
    statistics = bleu_statistics(sentences(30), [[text] for text in sentences(30, seed=1)])
    one, same, other = (bleu_resamples(statistics, 20, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert np.any(one != other)
    np.testing.assert_allclose(one[:, 0].mean(), statistics[:, 0].sum(), rtol=0.1)
