import hashlib
import json

import pytest

from attention_jax.data.text.storage import load_vocabulary
from attention_jax.data.text.vocabulary import SPECIAL_TOKENS, SymbolVocabulary, tokens_in_text
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

TEXTS = ["Two men, two dogs.", "Two cats!"]


@pytest.mark.parametrize("kind", ["words", "characters"])
def test_decode_undoes_encode(kind):
    vocabulary = SymbolVocabulary.train(kind, TEXTS)
    for text in TEXTS:
        assert vocabulary.decode([*vocabulary.encode(text), SpecialIds.EOS, 5]) == text


@pytest.mark.parametrize("kind", ["words", "characters", "symbols"])
def test_a_text_may_have_the_sign_that_joins_words(kind, tmp_path):
    text = "￭a b￭c ￭"
    SymbolVocabulary.train(kind, [text]).save(tmp_path)
    vocabulary = load_vocabulary(tmp_path)
    ids = vocabulary.encode(text)
    assert vocabulary.decode(ids) == text
    assert vocabulary.tokens(ids) == vocabulary.surfaces(text)
    assert "".join(vocabulary.surfaces(text)).replace(" ", "") == text.replace(" ", "")


def test_symbols_are_separated_by_spaces():
    vocabulary = SymbolVocabulary.train("symbols", ["AH0 K AW1", "K"])
    assert vocabulary.size == SpecialIds.COUNT + 3
    assert vocabulary.decode(vocabulary.encode("K AW1 K")) == "K AW1 K"


def test_train_ranks_by_frequency_then_by_symbol():
    vocabulary = SymbolVocabulary.train("characters", ["cabb", "ca"])  # each of them twice
    assert vocabulary.tokens(range(4, vocabulary.size)) == ["a", "b", "c"]
    vocabulary = SymbolVocabulary.train("characters", ["zza"])
    assert vocabulary.tokens([4, 5]) == ["z", "a"]


def test_train_keeps_the_most_frequent_symbols():
    vocabulary = SymbolVocabulary.train("characters", ["aabbc"], size=6)
    assert vocabulary.size == 6
    assert vocabulary.encode("abc") == [4, 5, SpecialIds.UNK]


def test_encode_never_gives_special_ids_to_text():
    vocabulary = SymbolVocabulary.train("symbols", ["a"])
    assert vocabulary.encode("<pad> </s> a") == [SpecialIds.UNK, SpecialIds.UNK, 4]


def test_decode_leaves_special_ids_out_and_stops_at_the_end():
    vocabulary = SymbolVocabulary.train("characters", ["ab"])
    ids = [SpecialIds.BOS, 4, SpecialIds.PAD, SpecialIds.UNK, 5, SpecialIds.EOS, 4]
    assert vocabulary.decode(ids) == "a<unk>b"


def test_tokens_names_every_id_without_joiners():
    vocabulary = SymbolVocabulary.train("words", ["a, b"])
    ids = [*vocabulary.encode("a, b"), SpecialIds.EOS, SpecialIds.PAD]
    assert vocabulary.tokens(ids) == ["a", ",", "b", "</s>", "<pad>"]


@pytest.mark.parametrize("kind", ["words", "characters", "symbols"])
def test_load_vocabulary_gives_the_same_back(tmp_path, kind):
    vocabulary = SymbolVocabulary.train(kind, TEXTS)
    vocabulary.save(tmp_path)
    loaded = load_vocabulary(tmp_path)
    assert loaded.size == vocabulary.size
    assert loaded.encode(TEXTS[0] + "?") == vocabulary.encode(TEXTS[0] + "?")
    assert loaded.decode(range(4, loaded.size)) == vocabulary.decode(range(4, loaded.size))


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("words", "A dog, a-b", ["A", "dog", ",", "a", "-", "b"]),
        ("characters", "a b", ["a", " ", "b"]),
        ("symbols", "AH0  B", ["AH0", "B"]),
        ("words", "a￭bc ￭", ["a", "￭", "bc", "￭"]),
        ("characters", "a￭", ["a", "￭"]),
        ("symbols", "￭a￭ ￭", ["￭a￭", "￭"]),
    ],
)
def test_surfaces_are_the_text_of_each_id(kind, text, expected):
    vocabulary = SymbolVocabulary(kind, ["a"])
    assert vocabulary.surfaces(text) == expected
    assert len(vocabulary.encode(text)) == len(expected)


def _swapped(text):
    record = json.loads(text)
    record["symbols"][:2] = record["symbols"][1::-1]
    return json.dumps(record)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "expected JSON"),
        (lambda text: "", "expected JSON"),
        (lambda text: "[]", "expected an object, found a list"),
        (lambda text: "{}", "expected a value named 'kind', found none"),
        (_swapped, "does not match its checksum"),
    ],
    ids=["cut", "empty", "list", "other", "swapped"],
)
def test_load_vocabulary_rejects_damage(tmp_path, damage, message):
    SymbolVocabulary.train("characters", TEXTS).save(tmp_path)
    path = tmp_path / "vocabulary.json"
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(DataError, match=rf"vocabulary\.json: .*{message}"):
        load_vocabulary(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"kind": "morphemes", "symbols": []}, "expected one of bpe, .*, words at kind, found"),
        ({"kind": ["words"], "symbols": []}, "expected one of .* at kind, found a list"),
        ({"kind": "words"}, "expected a value named 'symbols', found none"),
        ({"kind": "words", "symbols": None}, "expected a list at symbols, found null"),
        ({"kind": "words", "symbols": {"a": 4}}, "expected a list at symbols, found an object"),
        ({"kind": "words", "symbols": ["a", []]}, r"expected text at symbols\[1\], found a list"),
        ({"kind": "words", "symbols": ["a", 7]}, r"expected text at symbols\[1\], found 7"),
        ({"kind": "words", "symbols": ["\udce9"]}, r"expected text at symbols\[0\], found .*udce9"),
        ({"kind": "bpe", "model_sha256": 1}, "expected text at model_sha256, found 1"),
        ({"kind": "bpe"}, "expected a value named 'model_sha256', found none"),
    ],
)
def test_a_strangers_vocabulary_with_the_right_checksum(tmp_path, content, message):
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    (tmp_path / "vocabulary.json").write_text(json.dumps({**content, "sha256": digest}))
    (tmp_path / "subwords.model").write_bytes(b"")
    with pytest.raises(DataError, match=rf"vocabulary\.json: {message}"):
        load_vocabulary(tmp_path)


def test_load_vocabulary_rejects_a_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"vocabulary\.json: expected a saved vocabulary"):
        load_vocabulary(tmp_path)


def test_tokens_in_text_show_what_the_text_has_for_unknown_ones():
    vocabulary = SymbolVocabulary.train("words", TEXTS)
    text = "Two birds, two ?"
    ids = [*vocabulary.encode(text), SpecialIds.EOS]
    assert vocabulary.tokens(ids) == ["Two", "<unk>", ",", "two", "<unk>", "</s>"]
    assert tokens_in_text(vocabulary, ids, text) == ["Two", "birds", ",", "two", "?", "</s>"]


@pytest.mark.parametrize("kind", ["words", "characters", "symbols"])
def test_symbols_that_spell_special_tokens_are_symbols(kind):
    text = f"a {' '.join(SPECIAL_TOKENS)} b"
    vocabulary = SymbolVocabulary.train(kind, [text])
    ids = vocabulary.encode(text)
    assert min(ids) >= SpecialIds.COUNT and vocabulary.decode(ids) == text
