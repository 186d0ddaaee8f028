"""Pieces with given ids: cut, numbered, shown, written again, saved, and refused where damaged."""

import pytest

from attention_jax.data.text.pieces import MODEL_FILE, PieceVocabulary, share_ids
from attention_jax.data.text.storage import load_vocabularies, save_vocabularies
from attention_jax.data.text.words import word_pieces
from attention_jax.errors import DataError
from tests.golden.foreign.make import SOURCES, write_pieces

UNK = 3


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    path = tmp_path_factory.mktemp("pieces") / "model"
    pieces = [*write_pieces(path, SOURCES, unk_id=0, bos_id=-1, eos_id=-1), ">>fra<<"][1:]
    return PieceVocabulary(path.read_bytes(), pieces[::-1])


def test_ids_are_the_given_ones_and_not_those_of_the_model(vocabulary):
    ids = vocabulary.encode("the cat")
    assert vocabulary.tokens(ids) == vocabulary.split("the cat")
    assert ids == [4 + vocabulary.symbols.index(piece) for piece in vocabulary.split("the cat")]
    assert vocabulary.decode([*ids, 2, 9]) == "the cat"
    assert vocabulary.size == 4 + len(vocabulary.symbols)


def test_a_text_may_begin_with_the_code_of_a_language(vocabulary):
    assert vocabulary.encode(">>fra<< the")[0] == 4  # the last piece of the list, which is reversed
    assert vocabulary.encode(">>fra<< the")[1:] == vocabulary.encode(" the")
    assert vocabulary.encode(">>deu<< the") == [UNK, *vocabulary.encode(" the")]
    without = PieceVocabulary(vocabulary._model, vocabulary.symbols[1:])
    assert len(without.encode(">>fra<< the")) > len(vocabulary.encode(">>fra<< the"))
    assert vocabulary.surfaces(">>fra<< the")[0] == ">>fra<<"


def test_surfaces_are_the_text(vocabulary):
    text = ">>fra<<  the  ☃ cat"
    found = vocabulary.surfaces(text)
    assert "".join(found) == text
    ids = vocabulary.encode(text)
    assert len(found) == len(ids)
    assert [found[place].strip() for place, index in enumerate(ids) if index == UNK] == ["☃"]


def test_unknown_pieces_are_written_as_told(vocabulary):
    ids = vocabulary.encode("the ☃")
    assert vocabulary.decode(ids) == "the <unk>"
    assert vocabulary.decode(ids, unknown=["snowman"]) == "the snowman"
    assert vocabulary.tokens(ids)[-1] == "<unk>"


def test_pieces_join_to_words(vocabulary):
    ids = [*vocabulary.encode("the mat sat"), 2]
    pieces = vocabulary.tokens(ids[:-1])
    begins = [place for place, piece in enumerate(pieces) if piece.startswith("▁")]
    assert [places[0] for places in word_pieces(vocabulary, ids)] == begins


def test_it_comes_back_as_it_was(vocabulary, tmp_path):
    other = PieceVocabulary(vocabulary._model, vocabulary.symbols[::-1])
    save_vocabularies(tmp_path, vocabulary, other)
    source, target = load_vocabularies(tmp_path)
    assert source.encode("the cat") == vocabulary.encode("the cat")
    assert target.symbols == other.symbols
    assert share_ids(source, vocabulary) and share_ids(other, other)
    assert not share_ids(source, target)
    assert not share_ids(source, None)


def test_damaged_files_are_refused(vocabulary, tmp_path):
    with pytest.raises(DataError, match="expected every piece once"):
        PieceVocabulary(vocabulary._model, ["a", "a"])
    for content in (b"", b"no model"):
        with pytest.raises(DataError, match="expected a sentencepiece model, found something else"):
            PieceVocabulary(content, ["a"])
    vocabulary.save(tmp_path)
    (tmp_path / MODEL_FILE).write_bytes(b"no model")
    with pytest.raises(DataError, match=r"pieces\.model: the model does not match its checksum"):
        PieceVocabulary.load(tmp_path)
    (tmp_path / MODEL_FILE).unlink()
    with pytest.raises(DataError, match=r"pieces\.model: expected a sentencepiece model, found no"):
        PieceVocabulary.load(tmp_path)
