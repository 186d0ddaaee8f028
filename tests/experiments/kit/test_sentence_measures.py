import numpy as np
import pytest

from attention_jax.errors import RunDirectoryError
from attention_jax.evaluation.aer import LinkCounts
from attention_jax.evaluation.seeds import corpus_score
from attention_jax.sweeps.kept_files import kept_arrays
from experiments.kit import sentence_measures
from experiments.kit.sentence_measures import MEASURES, SentenceMeasure


def test_error_rate_of_sums_is_that_of_the_counts():
    rows = np.array([[3.0, 2.0, 2.0, 3.0], [5.0, 4.0, 1.0, 2.0]])
    expected = sum((LinkCounts(*row) for row in rows), LinkCounts()).aer
    assert corpus_score(SentenceMeasure("aer", rows)) == pytest.approx(expected)


def test_share_is_in_percent_and_pools_sentences():
    rows = np.array([[1.0, 2.0], [0.0, 8.0], [0.0, 0.0]])
    assert corpus_score(SentenceMeasure("missing", rows)) == pytest.approx(10.0)


def test_score_is_taken_row_by_row():
    sums = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(SentenceMeasure("repeated", sums).score(sums), [50.0, 75.0])


def test_nothing_counted_scores_no_error():
    assert corpus_score(SentenceMeasure("repeated", np.zeros((2, 2)))) == 0.0
    assert corpus_score(SentenceMeasure("aer", np.zeros((2, 4)))) == 0.0


def test_save_and_load_return_the_same(tmp_path, numpy_rng):
    counts = {"bleu": numpy_rng.integers(0, 9, (4, 10)), "match": numpy_rng.random((3, 2))}
    path = tmp_path / sentence_measures.FILE
    sentence_measures.save(path, counts)
    found = sentence_measures.from_arrays(kept_arrays(path, "counts"), "run")
    assert found.keys() == counts.keys()
    for name, measured in found.items():
        assert measured.measure == name
        np.testing.assert_allclose(measured.counts, counts[name], rtol=1e-6)


def test_a_measure_that_nobody_knows_is_one_line():
    with pytest.raises(RunDirectoryError, match="a/seed0: expected measures, found charm"):
        sentence_measures.from_arrays({"charm": np.zeros((1, 2))}, "a/seed0")


def test_every_measure_says_which_way_is_better():
    assert {measure.is_better for measure in MEASURES.values()} <= {"high", "low", ""}
