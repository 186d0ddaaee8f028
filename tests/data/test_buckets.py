import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from attention_jax.data.buckets import fit_buckets, fixed_rows, padded_fraction, rows_by_tokens

lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=200).map(
    lambda pairs: np.array(pairs, np.int64).T
)


def _corpus(numpy_rng, size=20_000):
    """Lengths like those of sentences and their translations."""
    source = np.clip(np.round(numpy_rng.gamma(6.0, 2.5, size)), 3, 60).astype(np.int64)
    target = np.clip(np.round(source * numpy_rng.normal(0.95, 0.15, size)), 3, 60)
    return source, target.astype(np.int64)


@hypothesis.given(lengths, st.integers(1, 12), st.integers(1, 16))
def test_fit_buckets_holds_every_example_once_and_whole(pairs, count, batch_size):
    source, target = pairs
    buckets = fit_buckets(source, target, count, fixed_rows(batch_size))
    assert 1 <= len(buckets) <= count
    members = np.concatenate([bucket.members for bucket in buckets])
    np.testing.assert_array_equal(np.sort(members), np.arange(len(source)))
    for bucket in buckets:
        assert source[bucket.members].max() == bucket.source_length
        assert target[bucket.members].max() == bucket.target_length
        assert bucket.num_batches == -(-len(bucket.members) // batch_size)


def test_fit_buckets_finds_separate_groups():
    source = np.array([3] * 64 + [9] * 64 + [20] * 64)
    target = np.array([5] * 64 + [8] * 64 + [30] * 64)
    buckets = fit_buckets(source, target, 3, fixed_rows(16))
    shapes = [(bucket.source_length, bucket.target_length) for bucket in buckets]
    assert shapes == [(3, 5), (9, 8), (20, 30)]


def test_fit_buckets_makes_no_shape_that_saves_nothing():
    source = target = np.array([5] * 16 + [6])
    assert len(fit_buckets(source, target, 8, fixed_rows(16))) == 2
    source = target = np.array([5] * 10 + [6])
    assert len(fit_buckets(source, target, 8, fixed_rows(16))) == 1


@pytest.mark.parametrize("rule", [fixed_rows(64), rows_by_tokens(2048, 8)])
def test_fit_buckets_pads_little_in_few_shapes(numpy_rng, rule):
    source, target = _corpus(numpy_rng)
    buckets = fit_buckets(source, target, 12, rule)
    assert padded_fraction(buckets, target, "target") < 0.12
    assert padded_fraction(buckets, source, "source") < 0.25
    one = fit_buckets(source, target, 1, rule)
    assert padded_fraction(one, target, "target") > 0.6


def test_fit_buckets_pads_little_on_a_dictionary(dictionary):
    words = dictionary["train"]
    source = np.array([len(word.source) + 1 for word in words])
    target = np.array([len(word.references[0].split()) + 1 for word in words])
    buckets = fit_buckets(source, target, 12, fixed_rows(256))
    assert padded_fraction(buckets, target, "target") < 0.05
    assert padded_fraction(buckets, source, "source") < 0.20


def test_padded_fraction_counts_empty_rows():
    lengths = np.array([2, 4, 4])
    [bucket] = fit_buckets(lengths, lengths, 1, fixed_rows(4))
    assert padded_fraction([bucket], lengths, "target") == 1 - 10 / 16


def test_rows_by_tokens_fills_the_batch_in_multiples():
    rows = rows_by_tokens(1000, 8)(np.array([1, 10, 30, 100, 2000]))
    np.testing.assert_array_equal(rows, [1000, 96, 32, 8, 8])
