"""Running text: the user's own and the Penn Treebank's, in texts of several lines."""

import gzip

import pytest

from attention_jax.configuration import typed
from attention_jax.data.builders.ptb import Config as PtbConfig
from attention_jax.data.builders.ptb import ptb_dataset_builder as builder
from attention_jax.data.builders.texts import Config as TextsConfig
from attention_jax.data.loading import build_task
from attention_jax.errors import ConfigError, DataError
from attention_jax.runs.config import from_config_dict


def test_lines_are_joined_to_texts_of_words_alone(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(" a  b\n\nc <unk>\nd\n")
    config = TextsConfig(
        train_table=str(path), validation_table=str(path), test_table=str(path), lines_per_text=2
    )
    task = build_task(config, tmp_path / "vocab")
    split = task.split("train")
    assert split.targets == ["a b <eos> c <unk>", "d"] and split.sources == ["", ""]
    assert task.task.continues and task.split("test").targets == split.targets
    vocabulary = task.target_vocabulary
    assert vocabulary.decode(split.target_ids[0]) == split.targets[0]
    assert len(split.target_ids[0]) == 6 and 3 not in split.target_ids[0]  # `<unk>` is a word here


def test_texts_are_held_out_where_there_is_no_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"line {n}\n" for n in range(60)))
    config = TextsConfig(
        train_table=str(path), lines_per_text=3, validation_examples=2, test_examples=2
    )
    splits = build_task(config, tmp_path / "vocab").splits
    found = [text for split in splits.values() for text in split.targets]
    assert {name: len(split) for name, split in splits.items()} == {
        "train": 17, "validation": 2, "test": 1,
    } or len(splits["train"]) == 16  # fmt: skip
    assert len(set(found)) == len(found) == 20


def test_mistakes_are_one_line(tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n")
    with pytest.raises(DataError, match="empty.txt: expected lines with words, found none"):
        build_task(TextsConfig(train_table=str(empty)), tmp_path / "vocab")
    with pytest.raises(ConfigError, match="data.lines_per_text: expected at least 1, found 0"):
        typed(PtbConfig, {"lines_per_text": 0}, "data")
    values = {
        "data": {"name": "ptb"}, "model": {"name": "encoder_decoder"}, "training": {"num_steps": 1},
    }  # fmt: skip
    with pytest.raises(ConfigError, match="model.name: expected a language model for .* 'ptb'"):
        from_config_dict(values)


def test_real_files_are_the_known_text(real_data):
    splits = PtbConfig().load()
    assert {name: len(split) for name, split in splits.items()} == {
        "train": 42_068, "validation": 3_370, "test": 3_761,
    }  # fmt: skip
    assert splits["test"][0] == ("", ("no it was n't black monday",))
    words = [text.split() for _, (text,) in splits["test"]]
    assert sum(len(line) + 1 for line in words) == 82_430
    assert len({word for _, (text,) in splits["train"] for word in text.split()}) == 9_999
    joined = PtbConfig(lines_per_text=5).load()["test"]
    assert len(joined) == 753 and joined[0][1][0].split().count("<eos>") == 4


def test_another_text_and_none_are_refused(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"ATTENTION_JAX_DATA/ptb/ptb.test.txt, .* found none"):
        builder.obtain_file("ptb.test.txt")
    (tmp_path / "ptb").mkdir()
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(tmp_path))
    path = tmp_path / "ptb" / "ptb.test.txt.gz"
    path.write_bytes(gzip.compress(b"another text\n"))
    with pytest.raises(DataError, match="ptb.test.txt.gz: expected text of sha256 dd65dff"):
        builder.obtain_file("ptb.test.txt")
    path.write_bytes(b"no gzip")
    with pytest.raises(DataError, match="ptb.test.txt.gz: expected a readable file"):
        builder.obtain_file("ptb.test.txt")
