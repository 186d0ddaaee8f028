"""Data sets of the user's own: a table for each split, or examples that are held out."""

import pytest

from attention_jax.configuration import typed
from attention_jax.data.builders.inflections import Config as Inflections
from attention_jax.data.builders.pronunciations import Config as Pronunciations
from attention_jax.data.loading import build_task
from attention_jax.errors import ConfigError, DataError
from attention_jax.types import SpecialIds

STEMS = ["ev", "at", "kedi", "masa", "kitap", "okul", "yol", "el", "göz", "kol", "dil", "su"]


def table(path, rows):
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def inflected(tmp_path):
    rows = [(stem, f"{stem}ler", "N;PL") for stem in STEMS]
    return table(tmp_path / "train.tsv", [*rows, *((stem, stem, "N;SG") for stem in STEMS)])


def test_every_split_may_have_a_file(tmp_path, inflected):
    other = table(tmp_path / "dev.tsv", [("ay", "aylar", "N;PL")])
    config = Inflections(train_table=inflected, validation_table=other, test_table=other)
    task = build_task(config, tmp_path / "vocab")
    assert {name: len(split) for name, split in task.splits.items()} == {
        "train": 24, "validation": 1, "test": 1,
    }  # fmt: skip
    assert task.task.label == "inflection" and task.split("test").sources == ["ay\tN;PL"]
    assert config.files("test") == (other,)


def test_examples_are_held_out_where_there_is_no_file(tmp_path, inflected):
    config = Inflections(train_table=inflected, validation_examples=2, test_examples=1)
    task = build_task(config, tmp_path / "vocab")
    sizes = {name: len(split) for name, split in task.splits.items()}
    assert sizes == {"train": 21, "validation": 2, "test": 1}
    found = [text for split in task.splits.values() for text in split.sources]
    assert len(found) == len(set(found)) == 24


def test_a_mistake_in_a_table_is_one_line(tmp_path, inflected):
    other = table(tmp_path / "dev.tsv", [("ay", "aylar", "N;PL"), ("ay", "aylar")])
    config = Inflections(train_table=inflected, validation_table=other)
    with pytest.raises(DataError, match=r"dev\.tsv:2: expected 3 columns .*, found 2$"):
        build_task(config, tmp_path / "vocab")
    with pytest.raises(ConfigError, match=r"data\.train_table: expected a file, found none"):
        typed(Inflections, {"name": "inflections"}, "config.data")


def test_a_word_may_be_pronounced_in_several_ways(tmp_path):
    rows = [("Tomate", "t o m a"), ("read", "ɹ iː d"), ("read", "ɹ  ɛ d")]
    rows += [(f"w{number}", "w") for number in range(10)]
    other = table(tmp_path / "dev.tsv", rows[:3])
    config = Pronunciations(
        train_table=table(tmp_path / "train.tsv", rows), validation_table=other, test_table=other
    )
    task = build_task(config, tmp_path / "vocab")
    assert len(task.split("train")) == 13
    assert task.split("test").references == [["t o m a"], ["ɹ iː d", "ɹ ɛ d"]]
    assert task.task.label == "pronunciation"
    assert task.target_vocabulary.size == SpecialIds.COUNT + 9
    assert task.task.prepare("Tomate\n", config) == "Tomate"  # in the case that it is listed in
