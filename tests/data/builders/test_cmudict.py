import gzip
import hashlib
import itertools
import re
import tomllib
from pathlib import Path

import pytest

from attention_jax.data import storage
from attention_jax.data.builders.cmudict import cmudict_dataset_builder as builder
from attention_jax.errors import DataError


def test_split_keeps_words_and_variants_together(dictionary):
    words = {name: [example.source for example in split] for name, split in dictionary.items()}
    assert not any("(" in word for split in words.values() for word in split)
    for first, second in itertools.combinations(words.values(), 2):
        assert not set(first) & set(second)
    assert sum(map(len, words.values())) == len(set().union(*words.values())) == 126_052


def test_split_has_the_fractions_of_words(dictionary):
    assert {name: len(split) for name, split in dictionary.items()} == {
        "train": 107_125,
        "validation": 6_343,
        "test": 12_584,
    }


def test_every_entry_is_a_reference(dictionary):
    examples = list(itertools.chain.from_iterable(dictionary.values()))
    assert sum(len(example.references) for example in examples) >= 135_000
    references = dict(examples)
    assert references["read"] == ("R EH1 D", "R IY1 D")
    assert references["aalborg"] == ("AO1 L B AO0 R G", "AA1 L B AO0 R G")


def test_words_and_pronunciations_have_known_symbols(dictionary):
    for example in itertools.chain.from_iterable(dictionary.values()):
        assert re.fullmatch(r"[a-z'.-]+", example.source)
        for reference in example.references:
            assert re.fullmatch(r"[A-Z]+[012]?( [A-Z]+[012]?)*", reference)


def test_the_dictionary_is_the_one_that_quickstart_was_trained_on():
    packed = Path(builder.__file__).with_name(builder.DICTIONARY).read_bytes()
    found = hashlib.sha256(gzip.decompress(packed)).hexdigest()
    assert found == "81917843c7f44ce2b094ac63873c2c7a4cf802040792c455ba3ca406891c3d22"
    assert found in builder.Builder.get_metadata().description


def test_the_dictionary_comes_with_its_licence(repository):
    licence = Path(builder.__file__).with_name("LICENSE")
    text = licence.read_text(encoding="utf-8")
    assert text.startswith("Copyright (C) 1993-2015 Carnegie Mellon University.")
    assert "Redistribution and use in source and binary forms" in text
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert str(licence.relative_to(repository)) in project["license-files"]
    assert project["license"] == "Apache-2.0 AND BSD-2-Clause"


def test_another_dictionary_is_rejected(monkeypatch):
    monkeypatch.setattr(storage, "recorded_digests", lambda _: {builder.DICTIONARY: "0" * 64})
    with pytest.raises(DataError, match=r"cmudict\.dict\.gz: expected sha256 0+, found 7ac658b1"):
        builder.read_dictionary()
