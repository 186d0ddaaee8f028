"""Curves that runs of a grid have logged."""

from types import SimpleNamespace

import pytest

from attention_jax.errors import RunDirectoryError
from experiments.kit.training_curves import (
    mean_curve,
    seconds_computed,
    sentences_per_second,
    tokens_per_second,
)


def run_of(seconds, steps=None, config=None, **curves):
    curves["seconds/compute"] = {"train": [steps or list(range(len(seconds))), seconds]}
    record = SimpleNamespace(curves=curves, config=config)
    return SimpleNamespace(name="a/seed0", record=lambda: record)


def test_seconds_are_added_up_and_rates_are_medians():
    rates = {"train": [[1, 2, 3], [1.0, 2.0, 9.0]]}
    run = run_of([5.0, 8.0, 9.0], tokens_per_second=rates)
    assert seconds_computed(run) == 22.0 and tokens_per_second(run) == 2.0


def test_sentences_are_those_of_the_batches_that_the_run_was_made_with():
    rates, config = {"train": [[1, 2], [3.0, 5.0]]}, {"data": {"batch_size": 10}}
    assert sentences_per_second(run_of([1.0], config=config, steps_per_second=rates)) == 40.0


def test_curves_of_runs_are_averaged():
    runs = [run_of([seconds, 3.0]) for seconds in (1.0, 2.0)]
    steps, values = mean_curve(runs, "seconds/compute", "train")
    assert steps.tolist() == [0, 1] and values.tolist() == [1.5, 3.0]
    runs.append(run_of([1.0], steps=[7]))
    with pytest.raises(ValueError, match="expected runs that logged it at the same steps"):
        mean_curve(runs, "seconds/compute", "train")


@pytest.mark.parametrize("curves", [{}, {"tokens_per_second": {"validation": [[1], [1.0]]}}])
def test_what_a_record_does_not_have_is_one_line(curves):
    expected = "a/seed0: expected 'tokens_per_second' of the train split, found none"
    with pytest.raises(RunDirectoryError, match=expected):
        tokens_per_second(run_of([1.0], **curves))
