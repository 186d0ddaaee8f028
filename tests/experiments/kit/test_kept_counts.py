"""Counts that records keep: the predictions they are made of, and what a run leaves."""

import types

import numpy as np
import pytest

from attention_jax.errors import RunDirectoryError
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.sweeps.kept_files import kept_arrays
from experiments.kit import kept_counts


def test_predictions_are_read_as_they_are_written(tmp_path):
    table = tmp_path / "predictions.test.tsv"
    table.write_text('source\toutput\n"a\tb"\n', encoding="utf-8")
    assert kept_counts.predictions(table) == [{"source": '"a', "output": 'b"'}]
    table.write_text("source\toutput\n", encoding="utf-8")
    with pytest.raises(RunDirectoryError, match=r"expected predictions, found none"):
        kept_counts.predictions(table)
    with pytest.raises(RunDirectoryError, match=r"absent.tsv cannot be read: No such file"):
        kept_counts.predictions(tmp_path / "absent.tsv")


def test_a_record_keeps_what_a_run_has_left(tmp_path):
    run = types.SimpleNamespace(directory=RunDirectory(tmp_path))
    kept_counts.write(run, "some.npz", np.array([[1, 2], [3, 4]]))
    ((file, (array,)),) = kept_counts.kept("some.npz").items()
    found = kept_arrays(tmp_path / file, "counts")
    np.testing.assert_array_equal(found[array], [[1, 2], [3, 4]])
    finished = types.SimpleNamespace(arrays=lambda name: {"some.npz": found}[name])
    assert kept_counts.of_run(finished, file).dtype == np.float64
