"""Merged bytes: cut as another program does, numbered, shown, written again, saved, refused."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from attention_jax.data.text.byte_pairs import ALPHABET, BytePairVocabulary
from attention_jax.data.text.storage import load_vocabularies, save_vocabularies
from attention_jax.data.text.vocabulary import write_record
from attention_jax.data.text.words import pieces_in_words, word_pieces
from attention_jax.errors import DataError
from tests.golden.foreign.make import CUTS

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "foreign" / "bart"
PAD, BOS, EOS, UNK = range(4)


def made(ids, merges, adds_space=False):
    """The vocabulary of another program's ids, of which `<s>` begins every text."""
    own = {"<pad>", "</s>", "<unk>"}
    symbols = [symbol for symbol in sorted(ids, key=ids.get) if symbol not in own]
    silent = ["<s>", "<mask>"]
    return BytePairVocabulary(symbols, merges, silent=silent, opening="<s>", adds_space=adds_space)


@pytest.fixture(scope="module")
def model():
    return json.loads((GOLDEN / "tokenizer.json").read_text())["model"]


@pytest.fixture(scope="module")
def vocabulary(model):
    return made(model["vocab"], model["merges"])


def theirs(vocabulary, ids, text):
    """The other program's ids of what a text is cut into, with the end."""
    return [*(ids[piece] for piece in vocabulary.split(text)), ids["</s>"]]


def test_texts_are_cut_as_by_the_other_program(vocabulary, model):
    with np.load(GOLDEN / "answers.npz") as known:
        cuts, mask = known["cuts"], known["cuts_mask"].astype(bool)
    for text, row, real in zip(CUTS, cuts, mask, strict=True):
        assert theirs(vocabulary, model["vocab"], text) == row[real].tolist()


@pytest.mark.parametrize("adds_space", [False, True])
def test_texts_come_back_and_their_parts_are_the_text(adds_space, model):
    vocabulary = made(model["vocab"], model["merges"], adds_space)
    for text in CUTS:
        ids = vocabulary.encode(text)
        assert vocabulary.decode([*ids, EOS, 9]) == text.removeprefix(" " if adds_space else "")
        assert "".join(vocabulary.surfaces(text)) == text
        assert len(vocabulary.surfaces(text)) == len(ids) == len(vocabulary.tokens(ids))
        spaced = adds_space and text and not text.startswith(" ")
        assert ids == made(model["vocab"], model["merges"]).encode(" " * bool(spaced) + text)


def test_merges_are_made_in_their_order():
    symbols = [*ALPHABET, "ab", "bc", "abc", "aa"]
    first = BytePairVocabulary(symbols, [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "a")])
    other = BytePairVocabulary(symbols, [("b", "c"), ("a", "b"), ("a", "a")])
    assert first.split("abcb aaa") == ["abc", "b", ALPHABET[32], "aa", "a"]
    assert other.split("abcb") == ["a", "bc", "b"]
    assert first.encode("") == []
    assert first.size == 4 + len(symbols)


def test_a_character_is_that_of_its_first_piece(vocabulary):
    ids = vocabulary.encode("a \u2603b")
    assert "".join(vocabulary.tokens(ids)[1:]) == "a▁\u2603b"
    assert "" in vocabulary.tokens(ids)
    half = next(place for place, piece in enumerate(vocabulary.symbols) if piece == ALPHABET[0xE2])
    assert vocabulary.tokens([4 + half]) == ["\ufffd"]
    assert vocabulary.decode([4 + half]) == "\ufffd"


def test_the_symbol_that_begins_texts_is_no_part_of_a_word(vocabulary):
    ids = [*vocabulary.encode("the \u2603 Zoo"), EOS]
    assert vocabulary.tokens(ids)[0] == "<s>▁"
    words, _ = pieces_in_words(vocabulary, vocabulary.tokens(ids[:-1]))
    assert words == ["<s>", "the", "\u2603", "Zoo"]
    places = word_pieces(vocabulary, ids)
    assert len(places) == 3 and sum(places, []) == [*range(1, len(ids) - 1)]


def test_unknown_pieces_are_written_as_told():
    vocabulary = BytePairVocabulary(["a", "b"], [])
    ids = vocabulary.encode("acb")
    assert ids == [4, UNK, 5]
    assert vocabulary.decode(ids) == "a<unk>b"
    assert vocabulary.decode([PAD, BOS, *ids], unknown=["\u00e9"]) == "a\u00e9b"
    assert vocabulary.tokens(ids) == ["a", "<unk>", "b"]


def test_it_comes_back_as_it_was(vocabulary, model, tmp_path):
    save_vocabularies(tmp_path, vocabulary, vocabulary)
    found, target = load_vocabularies(tmp_path)
    assert found is target and found.symbols == vocabulary.symbols
    for other in (found, pickle.loads(pickle.dumps(vocabulary))):
        assert [*map(other.encode, CUTS)] == [*map(vocabulary.encode, CUTS)]
        assert other.silent_ids == vocabulary.silent_ids
    save_vocabularies(tmp_path, vocabulary, made(model["vocab"], model["merges"], True))
    assert load_vocabularies(tmp_path)[1].surfaces("a")[-1] == "a"


def test_what_is_no_vocabulary_is_refused(tmp_path):
    with pytest.raises(DataError, match="expected every piece once"):
        BytePairVocabulary(["a", "a"], [])
    for merge in (("a", "b"), ("a",), ("a", "a")):
        with pytest.raises(DataError, match=f"expected merges .* found '{' '.join(merge)}'"):
            BytePairVocabulary(["a"], [merge])
    with pytest.raises(DataError, match="expected '<s>' among the symbols"):
        BytePairVocabulary(["a"], [], opening="<s>")
    symbols = {"kind": "byte_pairs", "symbols": ["a"], "merges": [["b", "c"]]}
    write_record(tmp_path, {**symbols, "silent": [], "opening": "", "adds_space": False})
    with pytest.raises(DataError, match=r"vocabulary\.json: expected merges of two pieces"):
        BytePairVocabulary.load(tmp_path)


@pytest.mark.parametrize("adds_space", [False, True])
def test_pages_are_cut_as_by_the_other_program(adds_space, repository):
    reason = "cuts texts of which no ids are kept"
    tokenizers = pytest.importorskip("tokenizers", reason=reason)
    lines = (repository / "docs" / "mechanisms.md").read_text(encoding="utf-8").split("\n")[:200]
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    other = tokenizers.ByteLevelBPETokenizer(add_prefix_space=adds_space)
    other.train_from_iterator(lines, 1500, 2, special_tokens=special, show_progress=False)
    model = json.loads(other.to_str())["model"]
    vocabulary = made(model["vocab"], model["merges"], adds_space)
    for text in (*lines, *CUTS):
        assert vocabulary.split(text)[1:] == other.encode(text).tokens
        assert vocabulary.decode(vocabulary.encode(text)) == text.removeprefix(" " * adds_space)
