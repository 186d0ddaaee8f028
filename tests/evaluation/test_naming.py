"""F1 and exact match of names, by hand."""

import pytest

from attention_jax.data.decoded import DecodedSplit
from attention_jax.data.examples import Split
from attention_jax.data.tasks.method_naming import (
    TASK,
    Config,
    nbest_scores,
    nbest_statistics,
    scores,
    statistics,
)
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.evaluation.naming import naming_counts, naming_scores, subtoken_f1

CONFIG = Config()


@pytest.mark.parametrize(
    ("suggestion", "name", "f1"),
    [
        ("get name", "get name", 1.0), ("name get", "get name", 1.0), ("get", "get name", 2 / 3),
        ("get get", "get name", 0.5), ("set", "get name", 0.0), ("", "get", 0.0),
    ],
)  # fmt: skip
def test_f1_of_subtokens(suggestion, name, f1):
    assert subtoken_f1(suggestion, name) == pytest.approx(f1)


def test_scores_are_means_over_functions_at_both_ranks():
    suggestions = [["get", "get name"], ["is open"], [], ["a", "b", "c", "d", "e", "x y"]]
    references = [["get name"], ["is open"], ["f"], ["x y"]]
    found = naming_scores(suggestions, references)
    assert found["f1"] == pytest.approx(100 * (2 / 3 + 1) / 4)
    assert found["exact_match"] == pytest.approx(25.0)
    assert found["f1_rank_5"] == found["exact_match_rank_5"] == pytest.approx(50.0)  # not the sixth
    assert naming_counts(suggestions, references)[:, -1].tolist() == [1.0] * 4
    with pytest.raises(ValueError, match="expected at least one function"):
        naming_scores([], [])


def test_the_task_scores_outputs_and_lists_of_them():
    vocabulary = SymbolVocabulary.train("symbols", ["get name"])
    split = Split(
        name="test", sources=["x"] * 2, targets=["get name", "set"], numbers=[0, 1],
        references=[["get name"], ["set"]], source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
    )  # fmt: skip
    best = scores(split, ["get name", "get"], CONFIG)
    assert best == {"f1": 50.0, "exact_match": 50.0}
    decoded = DecodedSplit(split, CONFIG, (), [["get"], ["get", "set"]])
    several = nbest_scores(decoded)
    assert several == {"f1_rank_5": pytest.approx(250 / 3), "exact_match_rank_5": 50.0}
    for name, (rows, mean) in statistics(split, ["get name", "get"], CONFIG).items():
        assert mean(rows.sum(axis=0)) == best[name]
    found = {n: mean(rows.sum(axis=0)) for n, (rows, mean) in nbest_statistics(decoded).items()}
    assert found == pytest.approx(several)
    assert {metric.name for metric in TASK.metrics} == set(best)
