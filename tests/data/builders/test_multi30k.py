import gzip
import hashlib
import shutil

import pytest

from attention_jax.data import storage
from attention_jax.data.builders.multi30k import Config
from attention_jax.data.builders.multi30k import multi30k_dataset_builder as builder
from attention_jax.data.preparation import load_examples
from attention_jax.errors import DataError

STEMS = ("train", "val", "test_2016_flickr")


def test_every_file_of_every_language_has_a_digest():
    digests = storage.recorded_digests(builder.__file__)
    for stem in STEMS:
        assert all(len(digests[f"{stem}.{language}.gz"]) == 64 for language in ("en", "de"))
    wanted = {
        builder.file_name(stem, language, casing)
        for stem in STEMS for language in builder.LANGUAGES for casing in builder._FILES_OF
    }  # fmt: skip
    assert set(digests) | set(builder._MD5) == wanted


def test_builder_offers_every_ordered_pair():
    names = set(builder.Builder.builder_configs)
    assert len(names) == 12
    assert {"en-de", "de-en", "fr-cs"} <= names


def test_published_md5_agree_with_the_files_at_hand(real_data):
    published = {
        "train.en.gz": "0065d13af80720a55ca8153d126e6627",
        "train.de.gz": "81ff90b99829c0cd4b1b587d394afd39",
        "val.en.gz": "2b69aa9253948ac9f67e94917272dd40",
        "val.de.gz": "6e0e229eb049e3fc99a1ef02fb2d5f91",
        "test_2016_flickr.en.gz": "ff2c0fcb4893a13bd73414306bc250ae",
        "test_2016_flickr.de.gz": "efd67d314d98489b716b145475101932",
    }
    for name, digest in published.items():
        content = (real_data / "multi30k" / "raw" / name).read_bytes()
        assert hashlib.md5(content).hexdigest() == digest


def test_real_files_make_the_known_splits(real_data):
    examples = load_examples(builder.Builder, "de-en")
    assert {name: len(split) for name, split in examples.items()} == {
        "train": 29_000,
        "validation": 1_014,
        "test": 1_000,
    }
    assert examples["train"][0] == (
        "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
        ("Two young, White males are outside near many bushes.",),
    )


def test_the_lower_cased_form_is_the_corpus_own(real_data):
    """Its files may lie packed in one's folder; their content is what is checked."""
    config = Config(name="multi30k", casing="lowercased", bleu_tokenizer="none")
    assert config.builder_config().name == "en-de-lowercased"
    examples = load_examples(builder.Builder, config.builder_config())
    assert [len(split) for split in examples.values()] == [29_000, 1_014, 1_000]
    assert examples["train"][0] == (
        "two young , white males are outside near many bushes .",
        ("zwei junge weiße männer sind im freien in der nähe vieler büsche .",),
    )


def test_tokenised_text_is_scored_by_its_own_tokens():
    with pytest.raises(ValueError, match="bleu_tokenizer: expected 'none' with casing 'lower"):
        Config(name="multi30k", casing="lowercased")
    assert Config(name="multi30k").builder_config() == "en-de"
    further = Config(
        name="multi30k", casing="lowercased", bleu_tokenizer="none", further_languages=("fr",)
    )
    assert further.builder_config().name == "en_fr-de-lowercased"


def test_a_changed_file_is_rejected(real_data, tmp_path, monkeypatch):
    raw = tmp_path / "mine" / "multi30k" / "raw"
    shutil.copytree(real_data / "multi30k" / "raw", raw)
    raw.chmod(0o755)
    lines = gzip.decompress((raw / "train.de.gz").read_bytes())
    (raw / "train.de.gz").unlink()
    (raw / "train.de.gz").write_bytes(gzip.compress(lines.replace(b"Zwei", b"Drei", 1)))
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(tmp_path / "mine"))
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path / "cache"))
    with pytest.raises(DataError, match=r"train\.de\.gz: expected sha256"):
        load_examples(builder.Builder, "en-de")


def test_a_language_that_is_not_at_hand_is_downloaded_from_the_pinned_commit(tmp_path, monkeypatch):
    asked = []

    def obtain(relative, url, digest):
        asked.append((relative, url, digest))
        return tmp_path / "x"

    monkeypatch.setattr(storage, "obtain", obtain)
    builder.obtain_file("val.lc.norm.tok.cs")
    [(relative, url, digest)] = asked
    assert relative == "multi30k/tok/val.lc.norm.tok.cs"
    assert url.endswith(f"{builder.COMMIT}/data/task1/tok/val.lc.norm.tok.cs") and len(digest) == 64
    builder.obtain_file("val.cs.gz")
    relative, url, digest = asked[-1]
    assert relative == "multi30k/raw/val.cs.gz"
    assert builder.COMMIT in url
    assert url.endswith("/data/task1/raw/val.cs.gz")
    assert digest == "83cdc082f646b769095615384cf5c0ca"
