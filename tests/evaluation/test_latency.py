"""Latency of simultaneous translation, by hand and by its definitions in NumPy."""

import numpy as np
import pytest

from attention_jax.evaluation.latency import (
    average_lagging,
    differentiable_average_lagging,
    latency_scores,
    tokens_read,
)


def test_translators_that_wait_for_k_words_lag_by_k():
    """wait-k of equal lengths: g(t) = min(k + t - 1, |x|), and AL is k (Ma et al. 2019)."""
    for k in (1, 2, 3):
        read = np.minimum(np.arange(6) + k, 6)
        assert average_lagging(read, 6) == pytest.approx(k)
        assert differentiable_average_lagging(read, 6) == pytest.approx(k)


def test_average_lagging_by_hand():
    """x of 4, y of 2, read (2, 4): tau 2, gamma 1/2: ((2 - 0) + (4 - 2)) / 2 = 2."""
    assert average_lagging([2, 4], 4) == pytest.approx(2.0)
    # Who waits for everything: tau 1, and the lag is |x|, however long the output is.
    assert average_lagging([4, 4, 4, 4], 4) == average_lagging([4], 4) == pytest.approx(4.0)
    # An output that ends early: tau |y| = 2, gamma 1/2: (1 + (2 - 2)) / 2.
    assert average_lagging([1, 2], 4) == pytest.approx(0.5)


def test_differentiable_average_lagging_by_hand():
    """x of 3, y of 3, read (1, 3, 3): g' = 1, 3, 4; lags 1, 2, 2."""
    assert differentiable_average_lagging([1, 3, 3], 3) == pytest.approx(5 / 3)
    assert average_lagging([1, 3, 3], 3) == pytest.approx((1 + 2) / 2)
    # Who waits for everything pays for each token of the output.
    assert differentiable_average_lagging([4, 4, 4, 4], 4) == pytest.approx(4.0)


@pytest.mark.parametrize("seed", range(4))
def test_both_equal_their_definitions(seed):
    rng = np.random.default_rng(seed)
    length, size = map(int, rng.integers(1, 9, size=2))
    read = np.maximum.accumulate(rng.integers(1, length + 1, size=size))
    gamma, lags, delayed = size / length, [], []
    for place, here in enumerate(read):
        lags.append(here - place / gamma)
        delayed.append(max(here, delayed[-1] + 1 / gamma) if delayed else here)
    tau = next((place + 1 for place, here in enumerate(read) if here == length), size)
    assert average_lagging(read, length) == pytest.approx(np.mean(lags[:tau]))
    slower = [here - place / gamma for place, here in enumerate(delayed)]
    assert differentiable_average_lagging(read, length) == pytest.approx(np.mean(slower))


def test_tokens_read_are_told_by_weights():
    """The last slot that has weight; everything where a head has stopped nowhere; never less."""
    weights = [
        [0.5, 0.5, 0.0, 0.0, 0.0],
        [0.0, 1e-38, 1.0 - 1e-7, 0.0, 0.0],
        [0.7, 0.3, 0.0, 0.0, 0.0],
        [0.0, 0.5, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 1.0],
    ]  # fmt: skip
    np.testing.assert_array_equal(tokens_read(np.array(weights)), [2, 3, 3, 4])
    np.testing.assert_array_equal(tokens_read(np.array(weights[-1:] * 2)), [4])


def test_scores_are_means_over_outputs_that_are_not_empty():
    waits, nothing = np.tile([0.0, 0.0, 1.0], (3, 1)), np.array([[1.0, 0.0]])
    copies = np.eye(3)
    found = latency_scores([waits, nothing, copies])
    assert found["average_lagging"] == pytest.approx((2 + 1) / 2)
    assert found["differentiable_average_lagging"] == pytest.approx((2 + 1) / 2)
    assert latency_scores([nothing]) == {}
