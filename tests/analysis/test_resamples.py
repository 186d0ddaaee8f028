"""Scores of resamples that runs leave: read as written, and paired between runs."""

import numpy as np
import pytest

from attention_jax.analysis.resamples import read_resamples, write_resamples
from attention_jax.errors import RunDirectoryError
from attention_jax.evaluation.bootstrap import paired_difference
from attention_jax.evaluation.seeds import compare, seed_mean
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.sweeps.kept_files import kept_arrays


def share(sums):
    return 100 * sums[..., 0] / sums[..., 1]


@pytest.fixture
def left(tmp_path, numpy_rng):
    """What runs leave that get a share of their words right, and the counts of their sentences."""
    words = numpy_rng.integers(4, 12, 50)

    def make(name, rate):
        rows = np.stack([numpy_rng.binomial(words, rate), words], axis=1)
        directory = RunDirectory(tmp_path / name)
        directory.path.mkdir()
        write_resamples(directory, "test", {"right": (rows, share)})
        arrays = kept_arrays(directory.resamples("test"), "scores")
        return read_resamples(arrays, name)["right"], rows.astype(float)

    return make


def test_scores_are_those_of_the_rows(left):
    found, rows = left("run", 0.6)
    assert found.score == pytest.approx(100 * rows[:, 0].sum() / rows[:, 1].sum())
    assert found.sentences == 50 and found.draws.shape == (1000,)
    assert abs(found.draws.mean() - found.score) < 1


def test_resamples_of_two_runs_are_paired(left):
    """Their comparison is the paired bootstrap of the rows themselves."""
    (a, rows_a), (b, rows_b) = left("a", 0.5), left("b", 0.55)
    found, expected = compare([a], [b]), paired_difference(rows_a, rows_b, share)
    assert vars(expected).items() <= vars(found).items()
    assert (found.wins, found.pairs) == (int(expected.difference > 0), 1)


def test_means_are_taken_over_seeds(left):
    runs = [left(name, 0.5)[0] for name in "abc"]
    assert seed_mean(runs).mean == pytest.approx(np.mean([run.score for run in runs]))


@pytest.mark.parametrize("values", [np.ones((2, 3)), np.ones(2)])
def test_other_arrays_are_refused(values):
    with pytest.raises(RunDirectoryError, match="a/seed0: expected scores of resamples"):
        read_resamples({"bleu": values}, "a/seed0")
