import itertools
import zipfile

import pytest

from attention_jax.data.builders.splitting import split_of
from attention_jax.data.builders.tatoeba import tatoeba_dataset_builder as builder
from attention_jax.data.preparation import load_examples
from attention_jax.errors import DataError


def _pairs(count):
    """Pairs in which German sentences translate several English ones."""
    return [(f"en {number}", f"de {number // 3}") for number in range(count)]


def test_split_pairs_shares_no_sentence_of_either_language():
    splits = builder.split_pairs(_pairs(3000))
    for side in (0, 1):
        sentences = [{pair[side] for pair in pairs} for pairs in splits.values()]
        for first, second in itertools.combinations(sentences, 2):
            assert not first & second


def test_split_pairs_drops_only_shared_german_sentences():
    pairs = _pairs(3000)
    splits = builder.split_pairs(pairs)
    kept = set().union(*splits.values())
    held_out = {german for name in ("validation", "test") for _, german in splits[name]}
    assert all(german in held_out for english, german in set(pairs) - kept)
    assert splits["test"] == [
        pair for pair in pairs if split_of(pair[0], validation=0.02, test=0.02) == "test"
    ]


def test_read_pairs_ignores_further_columns(tmp_path):
    path = tmp_path / "deu-eng.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("deu.txt", "Hi.\tHallo!\tCC-BY\nRun!\tLauf!\n")
    assert builder.read_pairs(path) == [("Hi.", "Hallo!"), ("Run!", "Lauf!")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("other.txt", "Hi.\tHallo!\n", "expected an archive with deu.txt"),
        ("deu.txt", "Hi.\tHallo!\nRun!\n", "deu.txt:2: expected two columns, found one"),
    ],
)
def test_read_pairs_rejects(tmp_path, name, text, message):
    path = tmp_path / "deu-eng.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, text)
    with pytest.raises(DataError, match=message):
        builder.read_pairs(path)


def test_real_archive_gives_every_translation_as_reference(real_data):
    examples = load_examples(builder.Builder, "en-de")
    sources = {name: {example.source for example in split} for name, split in examples.items()}
    for first, second in itertools.combinations(sources.values(), 2):
        assert not first & second
    references = dict(itertools.chain.from_iterable(examples.values()))
    assert {"Hallo!", "Grüß Gott!"} <= set(references["Hi."])
    assert sum(len(accepted) for accepted in references.values()) > 168_000


def test_real_archive_in_lower_case_shares_no_sentence(real_data):
    examples = load_examples(builder.Builder, "de-en-lowercase")
    sides = [
        [{example.source for example in split} for split in examples.values()],
        [{each for example in split for each in example.references} for split in examples.values()],
    ]
    for sentences in sides:
        for first, second in itertools.combinations(sentences, 2):
            assert not first & second
    references = dict(itertools.chain.from_iterable(examples.values()))
    assert all(source == source.lower() for source in references)
