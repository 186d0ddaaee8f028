"""Curves that runs of a grid have logged, from whole and from damaged records."""

import json
from types import SimpleNamespace

import pytest

from attention_jax.errors import RunDirectoryError
from experiments.training_curves import METRICS, mean_curve, seconds_computed, tokens_per_second


def run_of(record, *lines):
    record.mkdir()
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (record / METRICS).write_text(text)
    return SimpleNamespace(record=record)


def line(step, seconds, split="train"):
    return {"step": step, "split": split, "seconds/compute": seconds, "tokens_per_second": step}


def test_seconds_are_of_all_processes_and_of_each_step_once(tmp_path):
    run = run_of(tmp_path / "run", line(1, 5.0), line(2, 7.0), line(2, 8.0), line(3, 9.0))
    assert seconds_computed(run) == 22.0 and tokens_per_second(run) == 2.0


def test_curves_of_runs_are_averaged(tmp_path):
    runs = [run_of(tmp_path / str(n), line(1, n), line(2, 3.0)) for n in (1.0, 2.0)]
    steps, values = mean_curve(runs, "seconds/compute", "train")
    assert steps.tolist() == [1, 2] and values.tolist() == [1.5, 3.0]
    runs.append(run_of(tmp_path / "other", line(1, 1.0)))
    with pytest.raises(ValueError, match="expected runs that logged it at the same steps"):
        mean_curve(runs, "seconds/compute", "train")


def test_damaged_records_are_one_line(tmp_path):
    run = run_of(tmp_path / "run", line(1, 1.0, "validation"))
    with pytest.raises(RunDirectoryError, match="expected 'tokens_per_second' of the train split"):
        tokens_per_second(run)
    (run.record / METRICS).unlink()
    with pytest.raises(RunDirectoryError, match="metrics.jsonl cannot be read: No such file"):
        seconds_computed(run)
