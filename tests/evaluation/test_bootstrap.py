"""Bootstrap intervals and tests: seeded, and right about easy cases."""

import numpy as np
import pytest

from attention_jax.evaluation.bleu import bleu_from_statistics, bleu_statistics
from attention_jax.evaluation.bootstrap import (
    bleu_interval,
    paired_difference,
    resampled_difference,
)
from attention_jax.evaluation.chrf import chrf_from_statistics, chrf_statistics
from tests.evaluation.sentences import noisy, sentences

REFERENCES = sentences(200)
LISTED = [[reference] for reference in REFERENCES]


def compare(*systems, resamples):
    rows = [bleu_statistics(outputs, LISTED) for outputs in systems]
    return paired_difference(*rows, bleu_from_statistics, resamples=resamples)


def test_bleu_interval_encloses_the_score_and_narrows_with_more_sentences():
    statistics = bleu_statistics(noisy(REFERENCES, 0.2), LISTED)
    widths = []
    for number in (25, 200):
        low, high = bleu_interval(statistics[:number], resamples=300)
        assert low < bleu_from_statistics(statistics[:number].sum(axis=0)) < high
        widths.append(high - low)
    assert widths[1] < 0.6 * widths[0]


def test_bleu_interval_covers_the_truth_about_nineteen_times_in_twenty():
    # Each block is a sample of the same population, whose score is that of all blocks together.
    references = sentences(3000, seed=3, longest=12)
    statistics = bleu_statistics(noisy(references, 0.2), [[text] for text in references])
    truth = bleu_from_statistics(statistics.sum(axis=0))
    intervals = [bleu_interval(block, 200) for block in np.split(statistics, 60)]
    covered = np.mean([low <= truth <= high for low, high in intervals])
    assert 0.85 <= covered <= 1.0


def test_bleu_interval_repeats_with_its_seed():
    statistics = bleu_statistics(noisy(REFERENCES, 0.2), LISTED)
    assert bleu_interval(statistics, 50, seed=1) == bleu_interval(statistics, 50, seed=1)
    assert bleu_interval(statistics, 50, seed=1) != bleu_interval(statistics, 50, seed=2)


def test_paired_difference_tells_better_from_equal():
    bad, good = noisy(REFERENCES, 0.3, seed=1), noisy(REFERENCES, 0.2, seed=2)
    better = compare(bad, good, resamples=300)
    assert better.low > 0 and better.low < better.difference < better.high
    assert better.p_value == pytest.approx(1 / 301)
    worse = compare(good, bad, resamples=300)
    assert worse.difference == pytest.approx(-better.difference)
    assert worse.p_value == better.p_value


def test_paired_difference_finds_no_difference_where_there_is_none():
    same = compare(REFERENCES, REFERENCES, resamples=50)
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    one, other = noisy(REFERENCES, 0.2, seed=1), noisy(REFERENCES, 0.2, seed=2)
    assert compare(one, other, resamples=300).p_value > 0.05


@pytest.mark.parametrize("sign", [1, -1])
def test_the_p_value_counts_differences_either_way(sign):
    # From their mean of 1 the resamples are 2, 0, -2, 0 away: two of them as far as 2.
    found = resampled_difference(2.0 * sign, sign * np.array([3.0, 1.0, -1.0, 1.0]))
    assert found.p_value == pytest.approx((1 + 2) / (1 + 4))


def test_paired_difference_of_any_score():
    bad, good = noisy(REFERENCES, 0.3, seed=1), noisy(REFERENCES, 0.2, seed=2)
    rows = [chrf_statistics(outputs, LISTED) for outputs in (bad, good)]
    found = paired_difference(*rows, chrf_from_statistics, resamples=300, seed=5)
    scores = [float(chrf_from_statistics(each.sum(axis=0))) for each in rows]
    assert found.difference == pytest.approx(scores[1] - scores[0])
    # The same draws of sentences for both, one after the other.
    draws, differences = np.random.default_rng(5), []
    for _ in range(300):
        drawn = draws.integers(200, size=200)
        one, other = (chrf_from_statistics(each[drawn].sum(axis=0)) for each in rows)
        differences.append(other - one)
    np.testing.assert_allclose(
        [found.low, found.high], np.percentile(differences, [2.5, 97.5]), rtol=1e-9
    )
