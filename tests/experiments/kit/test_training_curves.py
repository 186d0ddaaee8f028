"""Curves that runs of a grid have logged."""

from types import SimpleNamespace

import pytest

from attention_jax.errors import RunDirectoryError
from experiments.kit.training_curves import (
    curves_of_seeds,
    mean_curve,
    seconds_computed,
    sentences_per_second,
    spread_curves,
    table_of_curves,
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


def found_curves(**systems):
    runs = {
        name: [run_of([1.0], loss={"validation": curve}) for curve in curves]
        for name, curves in systems.items()
    }
    runs |= {"other": [run_of([1.0])]}  # whose record has no such curve
    return curves_of_seeds(runs, "loss", "validation")


def test_curves_of_seeds_are_at_the_steps_that_all_have():
    found = found_curves(a=[[[1, 2, 3], [9.0, 6.0, 4.0]], [[2, 3, 4], [8.0, 6.0, 5.0]]])
    steps, values = found["a"]
    assert [*found] == ["a"] and steps.tolist() == [2, 3]
    assert values.tolist() == [[6.0, 4.0], [8.0, 6.0]]


def test_a_table_of_curves_has_a_few_shared_steps_and_when_the_base_is_met():
    steps = [*range(100, 1600, 100)]
    base = [steps, [2000.0 - step for step in steps]]
    fast = [[*steps, 1600], [1000.0 - step for step in [*steps, 1600]]]
    text = table_of_curves(found_curves(base=[base], fast=[fast], slow=[
        [steps, [3000.0 for _ in steps]], [steps, [3002.0 for _ in steps]]
    ]), "system", "base")  # fmt: skip
    head, _, *rows = text.splitlines()
    assert head == (
        "| system | seeds | 100 | 400 | 700 | 900 | 1,200 | 1,500 | as low as base at its best |"
    )
    assert rows[0].endswith("| 800.00 | 500.00 | 1,500 |") and rows[1].endswith("| 500 |")
    assert rows[2].startswith("| slow | 2 | 3001.00 ± 1.41 |") and rows[2].endswith("| – |")
    alone = table_of_curves(found_curves(fast=[fast]), "system", "base")
    assert "as low as" not in alone


def test_a_band_of_seeds_is_around_each_mean():
    curves = found_curves(a=[[[1, 2], [9.0, 6.0]], [[1, 2], [8.0, 4.0]]], b=[[[1, 2], [2.0, 1.0]]])
    (axes,) = spread_curves(curves, "loss", "Some").axes
    assert [line.get_ydata().tolist() for line in axes.lines] == [[8.5, 5.0], [2.0, 1.0]]
    band, _ = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (4.0, 9.0)


@pytest.mark.parametrize("curves", [{}, {"tokens_per_second": {"validation": [[1], [1.0]]}}])
def test_what_a_record_does_not_have_is_one_line(curves):
    expected = "a/seed0: expected 'tokens_per_second' of the train split, found none"
    with pytest.raises(RunDirectoryError, match=expected):
        tokens_per_second(run_of([1.0], **curves))
