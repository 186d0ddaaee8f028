import pytest

from attention_jax.data import storage
from attention_jax.data.builders.sigmorphon2021 import Config
from attention_jax.data.builders.sigmorphon2021 import sigmorphon2021_dataset_builder as builder
from attention_jax.data.loading import build_task
from attention_jax.data.preparation import load_examples
from attention_jax.data.pronunciation import read_pronunciations
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

SIZES = {"eng_us": (33_344, 4_168, 4_168), "ice": (800, 100, 100)}


def test_every_file_of_every_language_has_a_digest():
    wanted = {f"{language}_{part}.tsv" for language in builder.TRACKS
              for part in ("train", "dev", "test")}  # fmt: skip
    digests = storage.recorded_digests(builder.__file__)
    assert set(digests) == wanted and all(len(digest) == 64 for digest in digests.values())
    assert set(builder.Builder.builder_configs) == set(builder.TRACKS)


def test_every_real_file_is_the_recorded_one_and_has_each_word_once(real_data):
    for language in builder.TRACKS:
        sizes = SIZES.get(language, (8_000, 1_000, 1_000))
        for part, size in zip(("train", "dev", "test"), sizes, strict=True):
            path = builder.obtain_file(f"{language}_{part}.tsv")
            assert path.read_bytes().count(b"\n") == size
            if size <= 1_000:
                examples = read_pronunciations(path)
                assert len(examples) == size
                assert {len(example.references) for example in examples} == {1}


def test_real_files_make_the_known_splits(real_data, tmp_path):
    examples = load_examples(builder.Builder, Config(language="ice").builder_config())
    assert {name: len(split) for name, split in examples.items()} == {
        "train": 800, "validation": 100, "test": 100,
    }  # fmt: skip
    assert examples["train"][1] == ("afar", ("aː v a r",))
    task = build_task(Config(language="ice"), tmp_path / "vocab")
    ids = task.split("train").target_ids[1]
    assert len(ids) == 5 and SpecialIds.UNK not in ids
    assert task.task.prepare("Afar\n", Config()) == "afar"


def test_korean_syllables_are_read_as_jamo(real_data, tmp_path):
    """Of 1,089 syllables many are rare; of some 100 jamo with marks and letters hardly one is."""
    config = Config(language="kor", letters="parts")
    parts = build_task(config, tmp_path / "parts")
    whole = build_task(Config(language="kor"), tmp_path / "whole")
    assert parts.source_vocabulary.size < 120 < 1000 < whole.source_vocabulary.size
    unknown = [
        sum(SpecialIds.UNK in ids for ids in task.split("test").source_ids)
        for task in (parts, whole)
    ]
    assert unknown[0] < 3 < 20 < unknown[1]
    both = build_task(Config(language="kor", letters="both"), tmp_path / "both")
    assert both.source_vocabulary.size > whole.source_vocabulary.size
    assert parts.split("test").sources == whole.split("test").sources == both.split("test").sources


def test_what_is_not_at_hand_is_downloaded_from_the_pinned_commit(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(storage, "obtain", lambda *which: asked.append(which) or tmp_path)
    for name in ("eng_us_dev.tsv", "ice_test.tsv", "kor_train.tsv"):
        builder.obtain_file(name)
    assert [(relative, url.partition(builder.COMMIT)[2]) for relative, url, _ in asked] == [
        ("sigmorphon2021_g2p/eng_us_dev.tsv", "/data/high/eng_us_dev.tsv"),
        ("sigmorphon2021_g2p/ice_test.tsv", "/data/low/ice_test.tsv"),
        ("sigmorphon2021_g2p/kor_train.tsv", "/data/medium/kor_train.tsv"),
    ]


@pytest.mark.parametrize("row", ["word", "word\t", "word\tw\tɜː"])
def test_a_row_of_another_form_names_file_and_line(tmp_path, row):
    path = tmp_path / "mine.tsv"
    path.write_text(f"a\ta\n{row}\n")
    with pytest.raises(DataError, match=r"mine\.tsv:2: expected"):
        read_pronunciations(path)
