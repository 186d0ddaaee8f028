import itertools
import shutil

import pytest

from attention_jax.data import storage
from attention_jax.data.builders.conll2017 import Config
from attention_jax.data.builders.conll2017 import conll2017_dataset_builder as builder
from attention_jax.data.inflection import read_inflections
from attention_jax.data.preparation import load_examples
from attention_jax.errors import DataError

PARTS = ("train-low", "train-medium", "train-high", "dev", "uncovered-test")


def test_every_file_of_every_language_has_a_digest():
    wanted = {f"{language}-{part}" for language in builder.LANGUAGES for part in PARTS}
    digests = storage.recorded_digests(builder.__file__)
    assert set(digests) == wanted and all(len(digest) == 64 for digest in digests.values())


def test_builder_offers_every_language_at_every_size():
    names = {Config(language=language, setting=setting).builder_config()
             for language, setting in itertools.product(builder.LANGUAGES, builder.SETTINGS)}
    assert set(builder.Builder.builder_configs) == names and len(names) == 15


def test_real_files_make_the_known_splits(real_data):
    examples = load_examples(builder.Builder, Config(language="turkish").builder_config())
    sizes = {name: len(split) for name, split in examples.items()}
    assert sizes == {"train": 1_000, "validation": 1_000, "test": 1_000}
    assert examples["train"][0] == ("ayılmak\tV;IND;1;PL;PST;POS;DECL", ("ayıldık",))
    lemma, form = "en büyük ortak bölen", "en büyük ortak bölenlerine"
    assert examples["test"][0] == (f"{lemma}\tN;DAT;PL;PSS3S", (form,))


def test_every_real_file_is_the_recorded_one_and_can_be_read(real_data):
    sizes = {"train-low": 100, "train-medium": 1_000, "train-high": 10_000}
    for name in storage.recorded_digests(builder.__file__):
        path, size = builder.obtain_file(name), sizes.get(name.partition("-")[2], 1_000)
        assert path == real_data / "conll2017" / name
        assert path.read_bytes().count(b"\n") == size
        if size < 10_000 or "turkish" in name:
            assert len(read_inflections(path)) == size


def test_a_changed_file_is_rejected(real_data, tmp_path, monkeypatch):
    mine = tmp_path / "mine" / "conll2017"
    mine.mkdir(parents=True)
    shutil.copyfile(real_data / "conll2017" / "german-dev", mine / "german-dev")
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(tmp_path / "mine"))
    assert builder.obtain_file("german-dev") == mine / "german-dev"
    with (mine / "german-dev").open("a") as file:
        file.write("Maus\tMäuse\tN;PL\n")
    with pytest.raises(DataError, match=r"german-dev: expected sha256"):
        builder.obtain_file("german-dev")


def test_what_is_not_at_hand_is_downloaded_from_the_pinned_commit(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(storage, "obtain", lambda *which: asked.append(which) or tmp_path)
    for name in ("spanish-train-high", "spanish-uncovered-test"):
        builder.obtain_file(name)
    places = [(relative, url.partition(builder.COMMIT)[2]) for relative, url, _ in asked]
    assert places == [
        ("conll2017/spanish-train-high", "/all/task1/spanish-train-high"),
        ("conll2017/spanish-uncovered-test", "/answers/task1/spanish-uncovered-test"),
    ]
    assert [digest for *_, digest in asked] == [
        storage.recorded_digests(builder.__file__)[name]
        for name in ("spanish-train-high", "spanish-uncovered-test")
    ]
