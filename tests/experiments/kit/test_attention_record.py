import dataclasses
import shutil

import numpy as np
import pytest

from attention_jax.analysis.gold_links import GoldLinks, compare_with_gold
from attention_jax.data.loading import build_task
from attention_jax.errors import RunDirectoryError
from attention_jax.evaluation.over_under import over_under_scores
from attention_jax.evaluation.pharaoh import marked_links
from attention_jax.evaluation.seeds import corpus_score
from attention_jax.evaluation.translation import translation_scores
from attention_jax.runs.load import load_run
from attention_jax.runs.run_directory import read_json
from attention_jax.sweeps.kept_files import kept_arrays, kept_lines
from experiments.kit import attention_record, disagreement, sentence_measures
from experiments.kit.sentence_measures import SentenceMeasure
from tests.smoke_runs import smoke_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory, result = smoke_run()
    assert result.returncode == 0, result.stderr
    return load_run(shutil.copytree(directory, tmp_path_factory.mktemp("record") / "run"))


@pytest.fixture(scope="module")
def split(run):
    return build_task(run.config.data, run.directory.vocabularies).split("test")


def scores(counts):
    return {name: corpus_score(SentenceMeasure(name, rows)) for name, rows in counts.items()}


def test_text_counts_give_the_scores_of_the_corpus(split):
    outputs = ["a b a b c", "the dog runs", ""]
    references = [["a b c d"], ["the dog runs", "a dog"], ["one word"]]
    found = scores(
        attention_record.text_counts(
            outputs, dataclasses.replace(split, references=references), "char"
        )
    )
    expected = over_under_scores(outputs, references, tokenize="char")
    bleu = translation_scores(outputs, references, tokenize="char")["bleu"]
    assert found["bleu"] == pytest.approx(bleu)
    assert found["repeated"] == pytest.approx(expected["repeated_2gram"])
    assert found["excess"] == pytest.approx(expected["excess_words"])
    assert found["missing"] == pytest.approx(expected["missing_words"])


def test_record_agrees_with_the_evaluation_of_the_run(run, split):
    attention_record.record(run)
    path = run.directory.path
    counts = kept_arrays(path / sentence_measures.FILE, "counts")
    found = {name: corpus_score(measure)
             for name, measure in sentence_measures.from_arrays(counts, "run").items()}
    results = read_json(run.directory.results)["test"]
    assert found["bleu"] == pytest.approx(results["bleu"], abs=1e-6)
    # Forced decoding of the outputs repeats the attention with which they were found.
    assert found["unattended"] == pytest.approx(results["dropped_source"], abs=0.1)
    assert found["overattended"] == pytest.approx(results["repeated_source"], abs=0.1)
    assert found["deviation"] == pytest.approx(100 * results["coverage_deviation"], abs=0.1)
    assert "aer" not in found  # nobody knows gold links of made-up data
    outputs = run.directory.predictions("test").read_text().splitlines()
    assert kept_lines(path / disagreement.OUTPUTS) == outputs
    assert kept_lines(path / disagreement.TEXTS)[0::2] == list(split.sources)
    assert read_json(run.directory.run)["num_parameters"] > 0


def test_gold_counts_give_the_scores_of_the_corpus(run, split):
    words = list(map(str.split, map(" ".join, split.sources)))
    gold = GoldLinks({n: marked_links([(0, 0), (0, 1)]) for n in (3, 5, 8)}, words)
    found = scores(attention_record.gold_counts(run, split, gold))
    expected = compare_with_gold(run, split, gold).scores()
    matches = {"match", "match_before", "match_after"}
    assert found.keys() == {"aer", "saer", "probability_mass", *matches}
    for name, value in found.items():
        assert value == pytest.approx(expected[name]), name


def test_pairs_without_links_count_for_no_mean(run, split):
    words = list(map(str.split, map(" ".join, split.sources)))
    links = {3: marked_links([(0, 0)]), 5: marked_links([])}
    counts = attention_record.gold_counts(run, split, GoldLinks(links, words))
    np.testing.assert_array_equal(counts["match"][:, 1], [1, 0])


def test_outputs_of_a_split_that_was_not_evaluated_are_missed(run, split, tmp_path):
    (run.directory.path / "predictions.test.txt").rename(tmp_path / "away")
    try:
        with pytest.raises(RunDirectoryError, match=r"launch\.evaluate writes them"):
            attention_record.run_outputs(run, split)
    finally:
        (tmp_path / "away").rename(run.directory.path / "predictions.test.txt")
