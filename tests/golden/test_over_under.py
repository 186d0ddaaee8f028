"""Over- and under-translation in cases worked out by hand (T19)."""

import numpy as np
import pytest

from attention_jax.evaluation.fertility import (
    coverage_deviation,
    dropped_share,
    excess_mass,
    fertility,
    fertility_scores,
    repeated_share,
)
from attention_jax.evaluation.over_under import excess_and_missing, repeated_ngrams

# Two steps look at the first word, so that the last is hardly looked at.
WEIGHTS = np.array([[0.9, 0.1, 0], [0.8, 0.2, 0], [0.1, 0.8, 0.1]])
HYPOTHESIS, REFERENCE = "a b a a c".split(), "a b c d".split()


def test_fertility():
    found = fertility(WEIGHTS)
    np.testing.assert_allclose(found, [1.8, 1.1, 0.1])
    assert dropped_share(found) == pytest.approx(1 / 3)
    assert repeated_share(found) == pytest.approx(1 / 3)
    assert excess_mass(found) == pytest.approx(0.9)
    assert coverage_deviation(found) == pytest.approx((0.8 + 0.1 + 0.9) / 3)


def test_fertility_scores():
    expected = {
        "dropped_source": 100 / 3,
        "repeated_source": 100 / 3,
        "coverage_excess": 0.3,
        "coverage_deviation": 0.6,
    }
    assert fertility_scores([WEIGHTS]) == pytest.approx(expected)


def test_excess_and_missing_words():
    """Two a's too many among five words; d is missing among four."""
    assert excess_and_missing([HYPOTHESIS], [[REFERENCE]]) == pytest.approx((40, 25))


def test_repeated_ngrams():
    """Words a b a a c: 3 of 5 distinct; pairs ab ba aa ac: all distinct."""
    assert repeated_ngrams([HYPOTHESIS], 1) == pytest.approx(40)
    assert repeated_ngrams([HYPOTHESIS], 2) == 0
    assert repeated_ngrams(["the man the man the man".split()], 2) == pytest.approx(60)
