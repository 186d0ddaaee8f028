import hashlib
import io
import random

import pytest
import sentencepiece

from attention_jax.data.text.storage import load_vocabulary
from attention_jax.data.text.subwords import SubwordVocabulary
from attention_jax.data.text.vocabulary import write_record
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

WORDS = ["Männer", "dogs,", "“ein”", "ﬁve", "3½", "Straße.", "the", "a", "café", "猫"]


@pytest.fixture(scope="module")
def texts():
    generator = random.Random(0)
    return [" ".join(generator.choices(WORDS, k=6)) for _ in range(300)]


@pytest.fixture(scope="module")
def vocabulary(texts):
    return SubwordVocabulary.train(texts, 80)


def test_decode_gives_every_character_back(vocabulary, texts):
    for text in [*texts, "  the  a ", "ﬁve 3½"]:
        assert vocabulary.decode(vocabulary.encode(text)) == text


@pytest.mark.parametrize("text", [
    "<s> x </s>", "a <unk> b <pad>", "<pad><unk></s>", "the ▅ sat ▅▅", "a▁b ▁c", "nul \0 x", "⁇ x",
    "tab\there", "<0x0A> ￭ \ufffd", "\ufdd0<s> \ufdd1 \ufdd2\ufdd3 \ufdd4 \ufdd40 \ufdd4\ufdd1▁",
])  # fmt: skip
def test_no_text_is_taken_for_a_sign_of_the_model(text, tmp_path):
    SubwordVocabulary.train(["plain text", text] * 3, 60).save(tmp_path)
    vocabulary = load_vocabulary(tmp_path)
    ids = vocabulary.encode(text)
    assert vocabulary.decode(ids) == "".join(vocabulary.surfaces(text)).removeprefix(" ") == text
    assert min(ids) >= SpecialIds.COUNT
    assert "".join(vocabulary.tokens(ids)) == "▁" + text.replace(" ", "▁")


def test_models_of_earlier_versions_keep_their_ids(texts, vocabulary):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, model_type="bpe", vocab_size=80,
        character_coverage=1.0, normalization_rule_name="identity",
        remove_extra_whitespaces=False, pad_id=0, bos_id=1, eos_id=2, unk_id=3, minloglevel=2,
    )  # fmt: skip
    earlier = SubwordVocabulary(model.getvalue())
    assert earlier.tokens(range(80)) == vocabulary.tokens(range(80))
    for text in texts:
        assert earlier.encode(text) == vocabulary.encode(text)
    assert earlier.decode(earlier.encode("the▁a")) == "the a"
    assert vocabulary.encode("the▁a") != vocabulary.encode("the a") == earlier.encode("the▁a")


def test_size_is_the_one_asked_for(vocabulary):
    assert vocabulary.size == 80
    assert vocabulary.tokens([0, 1, 2, 3]) == ["<pad>", "<s>", "</s>", "<unk>"]


def test_frequent_words_are_single_tokens(vocabulary):
    assert len(vocabulary.encode("the")) == 1
    assert len(vocabulary.encode("eht")) > 1


def test_train_is_deterministic(vocabulary, texts):
    again = SubwordVocabulary.train(texts, 80)
    assert again._model == vocabulary._model


def test_decode_stops_at_the_end(vocabulary):
    ids = [SpecialIds.BOS, *vocabulary.encode("the dogs,"), SpecialIds.EOS, 7, SpecialIds.PAD]
    assert vocabulary.decode(ids) == "the dogs,"


def test_small_texts_give_a_smaller_vocabulary():
    assert 8 < SubwordVocabulary.train(["a b c", "a b"], 8000).size < 100


def test_a_size_below_the_number_of_characters_is_an_error(texts):
    with pytest.raises(DataError, match=r"subwords\.size: expected at least \d+, one per char"):
        SubwordVocabulary.train(texts, 10)


def test_load_vocabulary_gives_the_same_back(vocabulary, texts, tmp_path):
    vocabulary.save(tmp_path)
    loaded = load_vocabulary(tmp_path)
    assert loaded.size == vocabulary.size
    assert [loaded.encode(text) for text in texts] == [vocabulary.encode(text) for text in texts]


def test_load_vocabulary_rejects_damage(vocabulary, tmp_path):
    vocabulary.save(tmp_path)
    path = tmp_path / "subwords.model"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"subwords\.model: .* does not match its checksum"):
        load_vocabulary(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match=r"subwords\.model: expected a sentencepiece model"):
        load_vocabulary(tmp_path)


def _with_other_special_tokens(model):
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d e"]), model_writer=written, vocab_size=12,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    return written.getvalue()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda model: b"", "found an empty file"),
        (lambda model: b"garbage", "found a damaged one"),
        (lambda model: model[:-9], "found a damaged one"),
        (lambda model: model.replace("▁".encode(), b"\xff\xff\xff"), "found a damaged one"),
        (_with_other_special_tokens, r"\(0, 1, 2, 3\), found \(-1, 1, 2, 0\)"),
    ],
    ids=["empty", "garbage", "cut", "not UTF-8", "other numbers"],
)
def test_a_strangers_model_with_the_right_checksum(vocabulary, tmp_path, capfd, damage, message):
    vocabulary.save(tmp_path)
    path = tmp_path / "subwords.model"
    path.write_bytes(damage(path.read_bytes()))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    write_record(tmp_path, {"kind": "bpe", "model_sha256": digest})
    with pytest.raises(DataError, match=rf"subwords\.model: expected .*{message}") as caught:
        load_vocabulary(tmp_path)
    assert len(str(caught.value).splitlines()) == 1
    assert capfd.readouterr().err == ""


def test_surfaces_are_the_text_of_each_id(vocabulary):
    for text in ("the dogs, ☃ a", "Straße."):
        surfaces = vocabulary.surfaces(text)
        assert len(surfaces) == len(vocabulary.encode(text))
        assert "".join("".join(surfaces).split()) == "".join(text.split())


def test_unknown_pieces_stand_where_they_were(vocabulary):
    ids = vocabulary.encode("the☃ ☃ a ☃☃")
    assert vocabulary.decode(ids) == "the<unk> <unk> a <unk>"
    with_symbols = vocabulary.decode([SpecialIds.UNK, *ids], unknown=["!", None, "?"])
    assert with_symbols == "! the<unk> ? a <unk>"
