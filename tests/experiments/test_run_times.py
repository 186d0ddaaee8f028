"""Run times: every grid is in the table, and its times are those between begin and end."""

import json
import zipfile

import pytest

from experiments import run_times

ONCE = {"started": ["2026-01-01T10:00:00+00:00"], "finished": "2026-01-01T10:12:30+00:00"}


def test_every_experiment_that_trains_a_grid_is_in_the_table(repository):
    files = (repository / "experiments").glob("*.py")
    grids = {path.stem for path in files if "\ndef make_grid(" in path.read_text()}
    assert {experiment.__name__ for experiment in run_times.GRIDS} == {
        f"experiments.{name}" for name in grids
    }


def test_a_run_takes_what_lies_between_its_beginning_and_its_end():
    assert run_times.minutes(ONCE) == 12.5


def test_a_run_that_was_interrupted_tells_no_time():
    again = {**ONCE, "started": [*ONCE["started"], "2026-01-01T10:10:00+00:00"]}
    assert run_times.minutes(again) is None


def test_rows_have_the_median_and_the_sum_of_the_records(repository):
    records = repository / "docs/results/transformer_vs_rnn/records.zip"
    runs = json.loads(zipfile.ZipFile(records).read("runs.json"))
    taken = sorted(run_times.minutes(run["facts"]) for run in runs)
    (row,) = [
        line for line in run_times.run_times(repository / "docs/results").splitlines()
        if line.startswith("| `transformer_vs_rnn` |")
    ]  # fmt: skip
    *_, number, median, cores, hours = [cell.strip() for cell in row.strip("|").split("|")]
    assert (number, cores) == ("6", "1")
    assert float(median) == pytest.approx((taken[2] + taken[3]) / 2, abs=0.06)
    assert float(hours) == pytest.approx(sum(taken) / 60, abs=0.06)


def test_an_experiment_without_records_has_dashes(tmp_path):
    rows = run_times.run_times(tmp_path).splitlines()[2:]
    assert len(rows) == len(run_times.GRIDS)
    assert all(row.endswith("| – | – | – |") for row in rows)
