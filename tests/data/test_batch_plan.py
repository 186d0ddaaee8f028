import hypothesis
import hypothesis.strategies as st
import numpy as np

from attention_jax.data.batch_plan import (
    FILLER,
    permutation,
    plan_epoch,
    plan_evaluation,
    with_gradual_shapes,
)
from attention_jax.data.buckets import fit_buckets, fixed_rows

lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=200).map(
    lambda pairs: np.array(pairs, np.int64).T
)


def _same(plan, other):
    return len(plan) == len(other) and all(
        np.array_equal(first.indices, second.indices)
        for first, second in zip(plan, other, strict=True)
    )


def _check_every_example_once(plan, source, target, rows):
    indices = np.concatenate([batch.indices for batch in plan])
    np.testing.assert_array_equal(np.sort(indices[indices != FILLER]), np.arange(len(source)))
    for batch in plan:
        members = batch.indices[batch.indices != FILLER]
        assert len(batch.indices) == rows and len(members)
        assert source[members].max() <= batch.source_length
        assert target[members].max() <= batch.target_length


@hypothesis.given(
    lengths, st.integers(-(2**40), 2**70), st.integers(0, 9), st.integers(1, 6), st.integers(1, 9)
)
def test_plan_epoch_holds_every_example_once(pairs, seed, epoch, count, rows):
    source, target = pairs
    buckets = fit_buckets(source, target, count, fixed_rows(rows))
    plan = plan_epoch(seed, epoch, buckets)
    assert len(plan) == sum(bucket.num_batches for bucket in buckets)
    _check_every_example_once(plan, source, target, rows)
    assert _same(plan, plan_epoch(seed, epoch, buckets))


def test_plan_epoch_differs_between_epochs_and_seeds(numpy_rng):
    source, target = numpy_rng.integers(1, 30, (2, 500))
    buckets = fit_buckets(source, target, 4, fixed_rows(8))
    plan = plan_epoch(0, 0, buckets)
    assert not _same(plan, plan_epoch(0, 1, buckets))
    assert not _same(plan, plan_epoch(1, 0, buckets))


def test_plan_epoch_mixes_shapes_and_examples(numpy_rng):
    source, target = numpy_rng.integers(1, 30, (2, 2000))
    buckets = fit_buckets(source, target, 4, fixed_rows(8))
    plan = plan_epoch(0, 0, buckets)
    first_half = {(batch.source_length, batch.target_length) for batch in plan[: len(plan) // 2]}
    assert len(first_half) == len(buckets)
    inside = [np.diff(batch.indices[batch.indices != FILLER]) for batch in plan]
    assert 0.4 < np.mean(np.concatenate(inside) > 0) < 0.6


@hypothesis.given(lengths, st.integers(1, 6), st.integers(1, 9))
def test_gradual_shapes_hold_every_example_once(pairs, count, rows):
    source, target = pairs
    plan = plan_epoch(0, 0, fit_buckets(source, target, count, fixed_rows(rows)))
    gradual = with_gradual_shapes(plan)
    _check_every_example_once(gradual, source, target, rows)
    assert _same(gradual, with_gradual_shapes(plan))


def test_shapes_come_in_one_after_another_and_batches_catch_up(numpy_rng):
    lengths = numpy_rng.integers(1, 30, (2, 4000))
    buckets = fit_buckets(*lengths, 8, fixed_rows(8))
    plan = plan_epoch(0, 0, buckets)
    gradual = with_gradual_shapes(plan)
    firsts = {}
    for number, batch in enumerate(gradual):
        firsts.setdefault(batch.shape, number)
    frequency = {shape: sum(batch.shape == shape for batch in plan) for shape in firsts}
    assert list(firsts) == sorted(firsts, key=frequency.get, reverse=True)
    assert [number // 16 for number in firsts.values()] == list(range(len(buckets)))
    assert all(number % 16 == 0 for number in firsts.values())
    # What was held back has been made up for soon after, and the rest is in the order it was in.
    numbers = {id(batch): number for number, batch in enumerate(plan)}
    assert [numbers[id(batch)] for batch in gradual[200:]] == sorted(
        numbers[id(batch)] for batch in gradual[200:]
    )
    after = {id(batch) for batch in gradual[200:]}
    assert len(after & {id(batch) for batch in plan[200:]}) > 0.95 * len(after)


def test_gradual_shapes_of_few_batches_and_of_none():
    source = np.array([4, 4, 9, 20])
    plan = plan_epoch(0, 0, fit_buckets(source, source, 3, fixed_rows(1)))
    gradual = with_gradual_shapes(plan)
    assert [batch.source_length for batch in gradual][:1] == [4]
    assert len({batch.shape for batch in gradual}) == 3 and len(gradual) == 4
    assert with_gradual_shapes([]) == []


@hypothesis.given(lengths, st.integers(1, 9))
def test_plan_evaluation_holds_every_example_once(pairs, rows):
    source, target = pairs
    plan = plan_evaluation(source, target, rows)
    _check_every_example_once(plan, source, target, rows)
    shapes = {(batch.source_length, batch.target_length) for batch in plan}
    assert len(shapes) == len({source_length for source_length, _ in shapes})


def test_plan_evaluation_gives_long_examples_a_shape_of_their_own():
    source = np.array([4] * 8 + [500])
    plan = plan_evaluation(source, source, 8)
    assert [(batch.source_length, batch.target_length) for batch in plan] == [(8, 8), (512, 512)]


def test_plan_evaluation_joins_lengths_that_fill_no_batch():
    source = np.array([4, 4, 10, 10, 14, 14])
    plan = plan_evaluation(source, source, 4)
    assert [batch.source_length for batch in plan] == [12, 16]


def test_plan_evaluation_of_nothing_is_empty():
    assert plan_evaluation(np.zeros(0, np.int64), np.zeros(0, np.int64), 4) == []


def test_permutation_never_changes():
    assert permutation(8, 0, 1).tolist() == [3, 7, 4, 2, 1, 6, 5, 0]


def test_permutation_is_uniform():
    firsts = np.bincount([permutation(4, key)[0] for key in range(4000)], minlength=4)
    assert np.all(np.abs(firsts / 4000 - 0.25) < 0.03)
