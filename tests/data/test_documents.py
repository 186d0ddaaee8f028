"""Documents: how sentences are found, cut and collated, and what is refused in one line."""

import numpy as np
import pytest

from attention_jax.data.builders.documents import Config
from attention_jax.data.builders.smoke_documents import TELLING
from attention_jax.data.builders.smoke_documents import Config as Smoke
from attention_jax.data.documents import document_of, read_text, sentences_of
from attention_jax.data.examples import Inputs
from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_train_iterator
from attention_jax.data.text.symbol_kinds import SENTENCE_BREAK
from attention_jax.errors import ConfigError, DataError
from attention_jax.runs.config import from_config_dict
from attention_jax.types import SpecialIds

ROWS = [
    ("good", "A fine film. I liked it!"),
    ("bad", "Dull, dull, dull. The end?"),
    ("good", "Yes."),
    ("bad", "No. No. No."),
]


def table(path, rows=ROWS):
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def config(tmp_path):
    train = table(tmp_path / "train.tsv")
    return Config(train_table=train, validation_table=train, test_table=train)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('He said "so." Then (so…) he', ['He said "so."', "Then (so…)", "he"]),
        ("At 3.30 p.m. it rained", ["At 3.30 p.m.", "it rained"]),
        ("是的。不是！好", ["是的。", "不是！", "好"]),
        (f"no sign{SENTENCE_BREAK}here. there", ["no sign", "here.", "there"]),
        ("one two three four five", ["one two three four", "five"]),
    ],
)
def test_sentences_end_at_signs_at_separators_and_where_they_are_too_long(config, text, sentences):
    config = Config(train_table=config.train_table, max_sentence_words=4)
    assert sentences_of(read_text(text, config)) == sentences


def test_a_separator_of_the_users_own_is_the_only_one(config):
    config = Config(train_table=config.train_table, separator="|||")
    assert sentences_of(read_text("a. b ||| c ||| ||| d", config)) == ["a. b", "c", "d"]


def test_batches_are_tables_of_words_and_one_label(config, tmp_path):
    task = build_task(config, tmp_path / "vocab")
    split = task.split("train")
    batch = next(make_train_iterator(task, config, 0))
    order = list(batch["index"][batch["index"] >= 0])
    assert sorted(order) == [0, 1, 2, 3] and batch["source"].shape[1:] == (3, 8)
    place = order.index(1)
    rows = [task.source_vocabulary.encode(each) for each in ("Dull, dull, dull.", "The end?")]
    for found, expected in zip(batch["source"][place], [*rows, []], strict=True):
        assert list(found[: len(expected)]) == expected and not found[len(expected) :].any()
    np.testing.assert_array_equal(batch["source_mask"][place], [True, True, False])
    label = task.target_vocabulary.encode("bad")
    assert list(batch["target"][place]) == label and batch["target_mask"][place].all()
    assert task.target_vocabulary.size == SpecialIds.COUNT + 2
    inputs = Inputs(["Yes."], task.source_vocabulary, task.task.input_fields)
    assert list(inputs.columns["source"][0][0]) == list(split.columns["source"][2][0])


def test_the_vocabulary_has_the_most_frequent_words_and_all_labels(config, tmp_path):
    small = Config(
        train_table=config.train_table, validation_table=config.train_table,
        test_table=config.train_table, vocabulary_size=7, lowercase=True,
    )  # fmt: skip
    task = build_task(small, tmp_path / "vocab")
    assert task.source_vocabulary.size == 7 and task.target_vocabulary.size == SpecialIds.COUNT + 2
    assert "dull" in task.source_vocabulary.tokens(range(7))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("pos", "train.tsv:5: expected 2 columns separated by a tab (label, text), found 1"),
        ("pos\ta\tb", "train.tsv:5: expected 2 columns separated by a tab (label, text), found 3"),
        ("\ta", "train.tsv:5: expected a label in every row, found an empty column"),
        ("pos\t", "train.tsv:5: expected a sentence in every document, found none"),
        (f"pos\t{SENTENCE_BREAK}", "train.tsv:5: expected a sentence in every document"),
        ("pos\t" + 100_001 * "a", "train.tsv:5: expected at most 100000 characters, found 100001"),
    ],
)
def test_a_row_that_is_no_document_names_file_and_line(config, row, words):
    with open(config.train_table, "a", encoding="utf-8") as file:
        file.write(row + "\n")
    with pytest.raises(DataError) as error:
        config.load()
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_label_that_training_lacks_is_one_line(config, tmp_path):
    other = table(tmp_path / "test.tsv", [ROWS[0], ("fair", "So so.")])
    config = Config(
        train_table=config.train_table, validation_table=config.train_table, test_table=other
    )
    with pytest.raises(DataError) as error:
        config.load()
    assert str(error.value) == (
        f"{other}: expected labels of the training documents (bad, good), found 'fair' in test "
        "document 2"
    )


def test_documents_of_one_label_are_one_line(config, tmp_path):
    alike = table(tmp_path / "alike.tsv", [ROWS[0], ROWS[2]])
    with pytest.raises(DataError, match=r"expected documents of two labels at least, found 'good'"):
        Config(train_table=alike, validation_table=alike, test_table=alike).load()


def test_made_up_documents_are_the_same_and_their_evidence_is_right():
    first, second = Smoke().load(), Smoke().load()
    assert first == second and {name: len(part) for name, part in first.items()} == {
        "train": 512, "validation": 64, "test": 64,
    }  # fmt: skip
    for text, (label,), extras in first["test"]:
        words = text.replace(SENTENCE_BREAK, " ").split(" ")
        assert extras["evidence"]
        for start, end in extras["evidence"]:
            assert " ".join(words[start:end]) in TELLING[label]


def test_a_document_without_words_is_refused_by_whatever_makes_it():
    with pytest.raises(DataError, match="mine: expected a sentence in every document, found none"):
        document_of(["", " \t"], 5, "mine")


@pytest.mark.parametrize(
    ("data", "model", "words"),
    [
        ("smoke_documents", "encoder_decoder", "that reads a document, as sources of the task of"),
        ("smoke", "classifier", "that reads a sequence, as sources of the task of translation"),
    ],
)
def test_a_model_of_other_sources_is_one_line(data, model, words):
    values = {"data": {"name": data}, "model": {"name": model}, "training": {"num_steps": 1}}
    with pytest.raises(ConfigError) as error:
        from_config_dict(values)
    assert str(error.value).startswith("config.model.name: expected a model")
    assert words in str(error.value) and repr(model) in str(error.value)


def test_documents_that_only_case_tells_apart_are_in_one_split(tmp_path):
    texts = [f"Film {number} was good." for number in range(40)]
    texts += [text.upper() for text in texts]
    rows = [(("good", "bad")[n % 2], text) for n, text in enumerate(texts)]
    splits = Config(train_table=table(tmp_path / "t.tsv", rows), lowercase=True).load()
    found = {name: {example.source.lower() for example in split} for name, split in splits.items()}
    assert all(found.values()) and sum(map(len, found.values())) == 40
