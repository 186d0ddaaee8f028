"""Scores of programs: word by word, whatever a tokenization does to spaces."""

import pytest

from attention_jax.data.builders.smoke_code import Config
from attention_jax.data.decoded import DecodedSplit
from attention_jax.data.loading import build_task
from attention_jax.data.tasks import code


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    return build_task(Config(), tmp_path_factory.mktemp("code") / "vocab").split("test")


def test_spaces_are_no_mistake(split):
    joined = [text.replace(" ", "") if "del" not in text else text for text in split.targets]
    assert code.scores(split, joined, Config()) == {"exact_match": 100.0, "bleu": 100.0}
    assert code.unknown_words(DecodedSplit(split, Config(), joined)) == {
        "unknown_word_recall": 100.0, "unknown_words": 128.0,
    }  # fmt: skip


def test_a_wrong_name_is_a_wrong_program(split):
    """Half of its names are then found, one of each two."""
    outputs = [text.split(" ") for text in split.targets]
    for words in outputs:
        place = next(n for n, word in enumerate(words) if any(map(str.isdigit, word)))
        words[place] = "other"
    outputs = [" ".join(words) for words in outputs]
    scores = code.scores(split, outputs, Config())
    assert scores["exact_match"] == 0.0 and 0 < scores["bleu"] < 90
    details = code.unknown_words(DecodedSplit(split, Config(), outputs))
    assert details["unknown_word_recall"] == pytest.approx(50, abs=2)


def test_statistics_add_up_to_the_scores(split):
    outputs = [*split.targets[:40], *split.targets[:24]]
    scores = code.scores(split, outputs, Config())
    for name, (rows, score) in code.statistics(split, outputs, Config()).items():
        assert score(rows.sum(axis=0)) == pytest.approx(scores[name])
    assert {metric.name for metric in code.TASK.metrics} == set(scores)
