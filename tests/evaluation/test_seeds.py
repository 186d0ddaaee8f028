import dataclasses

import numpy as np
import pytest

from attention_jax.evaluation.seeds import _draws, compare, compare_gains, corpus_score, seed_mean

SENTENCES = 60


@dataclasses.dataclass(frozen=True, eq=False)
class Share:
    """Right words and all words of each sentence."""

    counts: np.ndarray

    def score(self, sums):
        return 100 * sums[..., 0] / sums[..., 1]


@pytest.fixture
def system(numpy_rng):
    """Makes a system that gets a share of the words wrong; every call is another seed."""
    words = numpy_rng.integers(4, 12, SENTENCES)

    def make(rate):
        counts = np.stack([numpy_rng.binomial(words, 1 - rate), words], axis=1)
        return Share(counts.astype(float))

    return make


def test_corpus_score_is_that_of_all_sentences_together(system):
    sentences = system(0.3)
    right, words = sentences.counts.T
    assert corpus_score(sentences) == pytest.approx(100 * right.sum() / words.sum())


def test_seed_mean_summarizes_the_seeds(system):
    seeds = [system(0.3) for _ in range(3)]
    scores = [corpus_score(seed) for seed in seeds]
    found = seed_mean(seeds)
    assert found.mean == pytest.approx(np.mean(scores))
    assert found.deviation == pytest.approx(np.std(scores, ddof=1))
    assert found.low < found.mean < found.high
    assert found.sentences == SENTENCES
    assert np.isnan(seed_mean(seeds[:1]).deviation)


def test_seed_means_interval_widens_with_the_spread_of_seeds(system):
    seed, better = system(0.3), system(0.1)
    alike, apart = seed_mean([seed, seed, seed]), seed_mean([seed, seed, better])
    assert apart.high - apart.low > 1.3 * (alike.high - alike.low)


def test_compare_finds_a_better_system(system):
    worse, better = [system(0.5) for _ in range(3)], [system(0.1) for _ in range(3)]
    found = compare(worse, better)
    assert found.difference == pytest.approx(seed_mean(better).mean - seed_mean(worse).mean)
    assert 0 < found.low < found.difference < found.high
    assert found.p_value < 0.01
    assert (found.wins, found.pairs) == (9, 9)


def test_compare_finds_the_opposite_the_other_way_round(system):
    a, b = [system(0.4), system(0.5)], [system(0.2)]
    there, back = compare(a, b), compare(b, a)
    assert back.difference == pytest.approx(-there.difference)
    assert (there.wins, back.wins, back.pairs) == (2, 0, 2)


def test_compare_finds_nothing_between_a_system_and_itself(system):
    seeds = [system(0.3)]
    found = compare(seeds, seeds)
    assert (found.difference, found.low, found.high, found.wins) == (0, 0, 0, 0)
    assert found.p_value == 1.0


def test_compare_draws_the_seeds_of_each_system_independently(system):
    seeds = [system(0.2), system(0.3), system(0.4)]
    found = compare(seeds, seeds)
    assert found.difference == 0
    assert found.low < -1 and found.high > 1


def test_compare_counts_the_chance_of_seeds(system):
    """Two draws of seeds from the same pool differ, but not beyond what seeds do."""
    low, high = system(0.4), system(0.25)
    assert compare([low], [high]).p_value < 0.05
    assert compare([low, high, low], [high, low, high]).p_value > 0.05


def test_seeds_are_drawn_with_the_variance_of_their_mean():
    """Where sentences are alike, nothing but seeds differs."""
    rates = [0.2, 0.4, 0.9]
    seeds = [Share(np.tile([10 * rate, 10.0], (SENTENCES, 1))) for rate in rates]
    found = _draws(seeds, stream=0)
    assert found.var() == pytest.approx(np.var([100 * rate for rate in rates], ddof=1) / 3, rel=0.1)


def test_gains_differ_where_the_system_helps_only_once(system):
    base, better, worse = ([system(rate) for _ in range(3)] for rate in (0.4, 0.1, 0.5))
    found = compare_gains((worse, base), (worse, better))
    expected = compare(worse, better).difference - compare(worse, base).difference
    assert found.difference == pytest.approx(expected)
    assert found.low < found.difference < found.high and found.p_value < 0.01
    same = compare_gains((base, better), (base, better))
    assert same.difference == 0 and same.low < 0 < same.high and same.p_value > 0.5
