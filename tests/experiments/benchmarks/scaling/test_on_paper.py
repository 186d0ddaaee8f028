"""Formulas of planning: against simulation, against minimisation, and against real sizes."""

import math

import jax
import numpy as np
import pytest

from attention_jax.updates.averaging import MovingAverage, NoAveraging
from attention_jax.updates.optimizers import Adam, build_optimizer
from attention_jax.updates.state import start_state
from experiments.benchmarks.scaling import on_paper
from experiments.benchmarks.scaling.subjects import Subject

SUBJECT = Subject(batch=3, source_length=7, target_length=5, hidden=8, vocabulary=30)


def simulated_goodput(interval, save, restart, failures, rng, segments=20_000):
    """Progress over time of a job that fails at random and starts again from what it saved."""
    elapsed, next_failure = 0.0, rng.exponential(failures)
    for _ in range(segments):
        begin = elapsed
        while begin + interval + save > next_failure:
            elapsed = next_failure + restart
            next_failure += rng.exponential(failures)
            while elapsed > next_failure:  # while starting again
                elapsed = next_failure + restart
                next_failure += rng.exponential(failures)
            begin = elapsed
        elapsed = begin + interval + save
    return segments * interval / elapsed


@pytest.mark.parametrize(
    ("interval", "save", "restart", "failures"),
    [(10.0, 1.0, 2.0, 100.0), (30.0, 5.0, 10.0, 40.0), (5.0, 0.1, 0.0, 1000.0)],
)
def test_goodput_is_that_of_a_simulation(numpy_rng, interval, save, restart, failures):
    expected = on_paper.goodput(interval, save, restart, failures)
    found = simulated_goodput(interval, save, restart, failures, numpy_rng)
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("save", "failures"), [(1.0, 1e6), (1.0, 1000.0), (1.0, 20.0)])
def test_daly_interval_has_the_best_goodput(save, failures):
    intervals = np.geomspace(0.01 * failures**0.5, 10 * failures, 20_000)
    values = [on_paper.goodput(interval, save, 3.0, failures) for interval in intervals]
    best = intervals[int(np.argmax(values))]
    assert on_paper.daly_interval(save, failures) == pytest.approx(best, rel=0.02)
    young = on_paper.goodput(on_paper.young_interval(save, failures), save, 3.0, failures)
    assert young <= on_paper.goodput(best, save, 3.0, failures) + 1e-12


def test_intervals_by_hand():
    assert on_paper.young_interval(2.0, 100.0) == 20.0
    assert on_paper.daly_interval(2.0, 100.0) == pytest.approx(20 * (1 + 0.1 / 3 + 0.01 / 9) - 2)
    assert on_paper.daly_interval(30.0, 10.0) == 10.0
    assert on_paper.mean_time_between_failures(1000.0, 8) == 125.0


def test_times_by_hand():
    assert on_paper.step_seconds(6e12, 4, 1e12, 0.5) == 3.0
    assert on_paper.all_reduce_seconds(8e9, 4, 1e9) == 12.0
    assert on_paper.all_reduce_seconds(8e9, 1, 1e9) == 0.0
    assert on_paper.data_parallel_efficiency(3.0, 1.0) == 0.75
    assert on_paper.data_parallel_efficiency(3.0, 1.0, overlap=1.0) == 1.0
    assert on_paper.input_rate(512, 0.5, 8) == 128.0


def test_example_bytes_are_those_of_a_batch():
    batch = SUBJECT.make_batch()
    size = sum(array.nbytes for array in batch.values())
    assert on_paper.example_bytes(7, 5) * SUBJECT.batch == size


@pytest.mark.parametrize("average", [False, True])
def test_checkpoint_bytes_are_those_of_the_state(average):
    averaging = MovingAverage() if average else NoAveraging()
    model, optimizer = SUBJECT.build(), build_optimizer(Adam())
    state = jax.eval_shape(
        lambda rng: start_state(model, optimizer, rng, averaging=averaging), jax.random.key(0)
    )
    parameters = sum(leaf.size for leaf in jax.tree.leaves(state.params))
    size = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    expected = on_paper.checkpoint_bytes(parameters, average=average)
    assert 0 <= size - expected < 100  # counters
