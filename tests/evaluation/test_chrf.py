"""chrF from sufficient statistics against sacrebleu."""

import numpy as np
import pytest
from sacrebleu.metrics import CHRF

from attention_jax.evaluation.chrf import chrf_from_statistics, chrf_statistics
from attention_jax.evaluation.translation import reference_streams
from tests.evaluation.sentences import noisy, sentences


@pytest.mark.parametrize("number", [1, 2, 40])
@pytest.mark.parametrize("error", [0.0, 0.3, 0.97])
def test_chrf_equals_sacrebleu(number, error):
    references = sentences(number, seed=number, longest=8)
    hypotheses = noisy(references, error)
    expected = CHRF().corpus_score(hypotheses, [references]).score
    rows = chrf_statistics(hypotheses, [[reference] for reference in references])
    assert float(chrf_from_statistics(rows.sum(axis=0))) == pytest.approx(expected, abs=1e-9)


def test_chrf_takes_the_best_of_several_references():
    ones, others = sentences(20, seed=1), sentences(20, seed=2)
    references = [[one, other][: 1 + index % 2] for index, (one, other) in
                  enumerate(zip(ones, others, strict=True))]  # fmt: skip
    hypotheses = noisy(others, 0.3)
    expected = CHRF().corpus_score(hypotheses, reference_streams(references)).score
    rows = chrf_statistics(hypotheses, references)
    assert float(chrf_from_statistics(rows.sum(axis=0))) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("hypothesis", "reference"), [("", "a"), ("a", ""), ("abc", "xyz")])
def test_chrf_without_a_match_is_zero(hypothesis, reference):
    assert chrf_from_statistics(chrf_statistics([hypothesis], [[reference]])) == np.zeros(1)


def test_chrf_of_short_texts_leaves_out_the_orders_that_they_have_not():
    rows = chrf_statistics(["a b c"], [["abc"]])
    np.testing.assert_array_equal(rows[0, :12], [3, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0])
    assert chrf_from_statistics(rows[0]) == pytest.approx(100)
