"""Search by optuna: trials are cells, which are found again, and better ones are tried."""

import importlib.util

import pytest

from attention_jax.errors import ConfigError, UserError
from attention_jax.sweeps import archive, trials
from attention_jax.sweeps.archive import Record
from attention_jax.sweeps.measure import Measure
from attention_jax.sweeps.sweep import Plan, open_sweep
from attention_jax.sweeps.trials import Trials, check_space

RATE, UNITS = "optimizer.learning_rate", "model.decoder.hidden_dim"
MEASURE = Measure("nll", "validation", "min")
needs_optuna = pytest.mark.skipif(
    importlib.util.find_spec("optuna") is None, reason="needs optuna, the extra `sweep`"
)


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def plan(*space, number=3, seeds=1):
    search = {"space": list(space), "trials": number}
    return Plan.asked("configs/quickstart.py:smoke", (), {"config": {}}, seeds, search)


def finish(run, value):
    """Keeps a record of a run that has reached a value."""
    results = {"validation": {"nll": value}} if value is not None else {}
    config = {"seed": run.seed}  # of which no code is told
    archive.add(run.records, [Record(run.cell, run.seed, run.overrides, config, {}, results)])


def rate_of(run):
    return float(run.overrides[RATE])


def carried_out(queue, value_of):
    """Finishes every run of a queue as soon as it is taken; returns the runs."""
    runs = []
    while run := queue.take():
        runs.append(run)
        finish(run, value_of(run))
        queue.finished(run)
    return runs


@needs_optuna
def test_trials_are_cells_within_the_space_with_all_seeds(tmp_path):
    space = (f"{RATE}=1e-4..1e-2:log", f"{UNITS}=8..16", "model.attention.name=bahdanau|luong_dot")
    sweep = open_sweep(str(tmp_path), plan(*space, seeds=2))
    queue = Trials(sweep, MEASURE)
    assert queue.left() == 6
    runs = carried_out(queue, rate_of)
    assert queue.left() == 0 and queue.take() is None
    assert [run.name for run in runs] == [f"trial_{n}/seed{s}" for n in range(3) for s in (0, 1)]
    for run in runs:
        assert 1e-4 <= rate_of(run) <= 1e-2 and 8 <= int(run.overrides[UNITS]) <= 16
        assert run.overrides["model.attention.name"] in ("bahdanau", "luong_dot")
        assert run.resolved()["optimizer"]["learning_rate"] == rate_of(run)
    assert len({rate_of(run) for run in runs}) == 3
    assert list(open_sweep(str(tmp_path), None).plan.cells) == ["config"] + [
        f"trial_{n}" for n in range(3)
    ]


@needs_optuna
@pytest.mark.parametrize(("better", "high"), [("min", False), ("max", True)])
def test_later_trials_are_where_the_earlier_ones_were_good(tmp_path, better, high):
    sweep = open_sweep(str(tmp_path), plan(f"{RATE}=0.0..1.0", number=24))
    runs = carried_out(Trials(sweep, Measure("nll", "validation", better)), rate_of)
    first, last = ([rate_of(run) for run in part] for part in (runs[:8], runs[-8:]))
    rises = sum(last) > sum(first)
    assert rises == high and abs(sum(last) - sum(first)) > 0.8


@needs_optuna
def test_a_search_goes_on_from_its_records(tmp_path):
    """Nothing else is kept: optuna is told of them as if it had asked for them."""
    queue = Trials(open_sweep(str(tmp_path), plan(f"{RATE}=0.0..1.0", number=16)), MEASURE)
    for _ in range(14):
        finish(run := queue.take(), abs(rate_of(run) - 0.9))
        queue.finished(run)
    cut_off = queue.take()
    again = Trials(open_sweep(str(tmp_path), None), MEASURE)
    assert again.left() == 1 and len(again._study.trials) == 14
    (run,) = carried_out(again, rate_of)
    assert run.cell == "trial_15" and cut_off.cell == "trial_14"


@needs_optuna
def test_values_that_were_tried_are_not_trained_again(tmp_path):
    sweep = open_sweep(str(tmp_path), plan("model.attention.name=bahdanau|luong_dot", number=6))
    runs = carried_out(Trials(sweep, MEASURE), lambda run: float(len(run.cell)))
    assert {run.overrides["model.attention.name"] for run in runs} <= {"bahdanau", "luong_dot"}
    assert len(runs) <= 2


@needs_optuna
def test_a_trial_without_a_value_is_no_reason_to_stop(tmp_path):
    sweep = open_sweep(str(tmp_path), plan(f"{RATE}=0.1..1.0"))
    assert len(carried_out(Trials(sweep, MEASURE), lambda run: None)) == 3


@needs_optuna
def test_both_ends_of_a_range_must_fit_the_config():
    check_space(plan(f"{RATE}=0.1..1.0", "model.attention.name=bahdanau|luong_dot"))
    with pytest.raises(ConfigError, match="hidden_dim: expected at least 1, found 0"):
        check_space(plan(f"{UNITS}=0..8"))
    with pytest.raises(ConfigError, match="did you mean 'bahdanau'"):
        check_space(plan("model.attention.name=luong_dot|bahdanua"))


def test_without_optuna_there_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(trials.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="--search: expected optuna, found none; pip install"):
        check_space(plan(f"{RATE}=0.1..1.0"))
