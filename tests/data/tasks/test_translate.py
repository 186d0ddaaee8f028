import dataclasses

import numpy as np
import pytest

from attention_jax.data.builders.multi30k import Config as Multi30kConfig
from attention_jax.data.builders.smoke import Config as SmokeConfig
from attention_jax.data.decoded import DecodedSplit
from attention_jax.data.loading import build_task
from attention_jax.data.task import find_task
from attention_jax.data.tasks import translate
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.evaluation.translation import translation_scores
from attention_jax.types import SpecialIds

CONFIG = SmokeConfig()


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return build_task(CONFIG, tmp_path_factory.mktemp("vocab"))


def test_smoke_spells_digits(task):
    assert task.task is translate.TASK and task.task.label == "translation"
    assert task.source_vocabulary.size == task.target_vocabulary.size == SpecialIds.COUNT + 10
    train = task.split("train")
    assert len(train.sources[0]) == len(train.targets[0].split())


def test_texts_are_prepared_as_the_data_is():
    cased, lower = Multi30kConfig(), Multi30kConfig(lowercase=True)
    for data_config, text in ((cased, "The Dog"), (lower, "the dog")):
        assert find_task(data_config).prepare(" The Dog\n", data_config) == text
        assert find_task(data_config).prepare(" The Dog\n", data_config, is_source=False) == text


def test_scores_of_the_references_are_perfect(task):
    split = task.split("test")
    scores = translate.scores(split, split.targets, CONFIG)
    assert scores["bleu"] == pytest.approx(100.0) and scores["length_ratio"] == 1.0
    assert "bleu_signature" in scores
    decoded = DecodedSplit(split, CONFIG, split.targets)
    by_length = translate.length_scores(decoded)
    counts = [value for name, value in by_length.items() if name.endswith("_sentences")]
    assert sum(counts) == len(split) and translate.missing_words(decoded)["missing_words"] == 0
    assert {*translate.TASK.printed} <= {*scores}
    assert {metric.name for metric in translate.TASK.metrics} <= {*scores}


def test_words_of_tokenised_texts_are_what_spaces_separate(task):
    texts = {"sources": ["a dog ."], "targets": ["ein hund läuft ( schnell )"]}
    split = dataclasses.replace(
        task.split("test").select([0]), **texts, references=[[text] for text in texts["targets"]]
    )
    outputs = ["ein hund läuft (schnell)"]
    usual, tokenised = Multi30kConfig(), Multi30kConfig(bleu_tokenizer="none")
    scores = translate.scores(split, outputs, tokenised)
    assert "tok:none" in scores["bleu_signature"]
    assert scores["length_ratio"] == pytest.approx(4 / 6) and scores["bleu"] < 50
    assert translate.scores(split, outputs, usual)["bleu"] == pytest.approx(100)


def test_signatures_are_lines_below_the_scores():
    found = translation_scores(["a b c d"], [["a b c d"]])
    lines = translate.signatures(found)
    assert [line.split()[0] for line in lines] == ["bleu", "chrf"]
    assert "tok:13a" in lines[0] and "nc:6" in lines[1]
    assert translate.TASK.table(found) == lines
    assert translate.signatures({"bleu": 1.0}) == []


def test_scores_of_a_split_count_words_as_its_tokenizer_does(task):
    texts = {"sources": ["a dog", "a cat"], "targets": ["一只狗在跑步", "一只猫在睡觉"]}
    split = dataclasses.replace(
        task.split("test").select([0, 1]), **texts,
        references=[[target] for target in texts["targets"]],
    )  # fmt: skip
    outputs = ["一只狗在走路", "一只猫在睡觉"]
    usual, chinese = Multi30kConfig(), Multi30kConfig(bleu_tokenizer="zh")
    assert "tok:13a" in translate.scores(split, outputs, usual)["bleu_signature"]
    scores = translate.scores(split, outputs, chinese)
    assert "tok:zh" in scores["bleu_signature"] and 50 < scores["bleu"] < 100
    rows, score = translate.statistics(split, outputs, chinese)["bleu"]
    assert score(rows.sum(axis=0)) == pytest.approx(scores["bleu"])
    by_length = translate.length_scores(DecodedSplit(split, chinese, outputs))
    (bucket,) = [name for name in by_length if not name.endswith("_sentences")]
    assert by_length[bucket] == pytest.approx(scores["bleu"])
    assert translate.missing_words(DecodedSplit(split, chinese, outputs))["missing_words"] < 50
    assert translate.missing_words(DecodedSplit(split, usual, outputs))["missing_words"] == 50


def test_attention_is_that_of_the_step_that_links(task):
    """In a run whose words are linked when they are read, as `alignments.SPLIT.txt` has them."""
    split = task.split("test").select(range(5))

    def scores(turn, shift):
        draw, found = np.random.default_rng(0), []
        for source, target in zip(split.source_ids, split.target_ids, strict=True):
            weights = draw.dirichlet(np.full(len(source), 0.3), len(target))
            weights[0] = 0.0  # of the step that reads BOS, which links nothing
            weights = np.roll(weights, turn, axis=0)
            found.append([Hypothesis(target, 0.0, 0.0, weights)])
        one = DecodedSplit(split, CONFIG, split.targets, (), found, True, shift)
        return {**translate.covering_scores(one), **translate.attention_scores(one)}

    expected, found = scores(-1, 0), scores(0, 1)
    assert found == pytest.approx(expected) and scores(0, 0) != pytest.approx(expected)
