"""Words of texts and of pieces: golden cases, and that both are the same words."""

import functools
import re

import hypothesis
import hypothesis.strategies as st
import pytest

from attention_jax.data.text.characters import SEPARATORS
from attention_jax.data.text.scripts import LETTERS, writes_no_spaces
from attention_jax.data.text.spans import overlaps
from attention_jax.data.text.subwords import SubwordVocabulary
from attention_jax.data.text.tokenization import surface, tokenize
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.data.text.words import word_pieces, words_of_pieces, words_of_text
from attention_jax.spaced_words import spaced_words

SEPARATE = re.compile(rf"[\s{SEPARATORS}]")
LINES = ["我喜欢图书馆的书。", "我喜欢书", "图书馆的书", "ฉันชอบหนังสือ", "a new book 我"]
# Of all characters, and often of those that are told apart.
SOME = ["a", "1_", " ", ",", "e\u0301", "\u0301", "हि", "\u200b", "x\u200cy", "▁", "￭", "\ufffc"]
UNSPACED = ["ม่", "ก", "图书", "ខ្ម", "\u17d2", "\u0e33"]


def _texts(parts):
    anything = st.characters(exclude_categories=["Cs"])
    return st.lists(st.sampled_from(parts) | anything, max_size=12).map("".join)


TEXTS = _texts([*SOME, *UNSPACED])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我喜欢书。", ["我", "喜", "欢", "书", "。"]),
        ("我用Python3写 程序", ["我", "用", "Python3", "写", "程", "序"]),
        ("彼はパンを食べた!", [*"彼はパンを食べた!"]),
        ("ไม่ชอบ, 12", ["ไ", "ม่", "ช", "อ", "บ", ",", "12"]),
        ("Hello, ２０年 (von)", ["Hello", ",", "２０", "年", "(", "von", ")"]),
        ("cafe\u0301s, हिन्दी", ["cafe\u0301s", ",", "हिन्दी"]),
        ("العَرَبِيَّة עִבְרִית", ["العَرَبِيَّة", "עִבְרִית"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("\u0301ab .\u0301", ["\u0301", "ab", ".", "\u0301"]),
        ("ខ្ញុំ\u200bទៅ ไม่\u200bชอบ a\u200bb", ["ខ្ញុំ", "ទៅ", "ไ", "ม่", "ช", "อ", "บ", "a", "b"]),
        ("a￭bc ▁d▁", ["a", "￭", "bc", "d"]),
        ("ก\u20dd图\u20dd", ["ก\u20dd", "图\u20dd"]),
        ("", []),
    ],
)
def test_words_of_text(text, words):
    assert words_of_text(text) == words


@hypothesis.given(_texts(SOME).filter(lambda text: not writes_no_spaces(text)))
def test_words_of_other_scripts_are_those_of_the_vocabulary(text):
    tokens = map(surface, tokenize(text))
    assert words_of_text(text) == [token for token in tokens if token not in SEPARATORS]


@hypothesis.given(TEXTS)
def test_words_are_all_that_a_text_has_between_spaces(text):
    words = words_of_text(text)
    assert all(words) and "".join(words) == SEPARATE.sub("", text)


@hypothesis.settings(deadline=None)
@hypothesis.given(TEXTS, TEXTS)
def test_words_have_tokens_whatever_the_vocabulary(text, known):
    """Those of aligners, those between spaces and those of the vocabulary itself."""
    kinds = ("words", "characters", "symbols")
    for vocabulary in (*(SymbolVocabulary.train(kind, [known]) for kind in kinds), subwords()):
        surfaces = vocabulary.surfaces(text)
        assert all(overlaps(words_of_text(text), surfaces)), vocabulary.kind
        overlaps(spaced_words(text), surfaces)
        ids = [*vocabulary.encode(text), 2]
        found = word_pieces(vocabulary, ids, text)
        assert sorted(set().union(*found)) == [*range(len(ids) - 1)]


@functools.cache
def subwords():
    return SubwordVocabulary.train(["a b ab, ba ￭ ▁ ก ม่ 图图 हि e\u0301"] * 3, 60)


def test_symbols_are_words():
    assert words_of_pieces(["K", "AE1", " "], "symbols") == (["K", "AE1", " "], [[0], [1], [2]])


@hypothesis.given(TEXTS)
def test_words_of_subwords_are_what_white_space_separates(text):
    pieces = [f"▁{word}" if word else "▁" for word in text.split(" ")]
    if not writes_no_spaces(text) and SEPARATE.sub("", text):
        words = [word for word in spaced_words(text.replace("▁", " ")) if word.strip("\u200b")]
        assert words_of_pieces(pieces)[0] == words


@pytest.mark.parametrize("kind", ["words", "characters"])
def test_the_sign_of_a_space_begins_no_word_where_it_is_a_character(kind):
    vocabulary = SymbolVocabulary.train(kind, ["a ▁ b"])
    pieces = vocabulary.tokens(vocabulary.encode("a ▁ b"))
    assert words_of_pieces(pieces, kind) == (pieces, [[place] for place in range(len(pieces))])
    ids = [*vocabulary.encode("a ▁ b"), 2]
    assert len(word_pieces(vocabulary, ids)) == len(pieces)


@pytest.mark.parametrize(
    ("pieces", "words", "members"),
    [
        (["▁new", "er", "▁car", "s", "."], ["newer", "cars."], [[0, 1], [2, 3, 4]]),
        (["hou", "se", "▁is"], ["house", "is"], [[0, 1], [2]]),
        (["▁", "x", "▁", "y<"], ["x", "y<"], [[0, 1], [2, 3]]),
        (["▁a", "<unk>", "▁b"], ["a<unk>", "b"], [[0, 1], [2]]),
        (["M", "e"], ["Me"], [[0, 1]]),
        (["▁the", "▁", "▁dog"], ["the", "dog"], [[0, 1], [2]]),
        (["▁", "▁", "dog", "▁"], ["dog"], [[0, 1, 2, 3]]),
        (["▁the", "\u00a0", "dog", "\t", "s"], ["the\u00a0dog", "s"], [[0, 1, 2, 3], [4]]),
        (["▁a\u3000b", "c", "▁\u3000", "▁d"], ["a\u3000bc", "\u3000", "d"], [[0, 1], [2], [3]]),
        (["▁a", "\ufffc", "<unk>", "▁<unk>"], ["a\ufffc<unk>", "<unk>"], [[0, 1, 2], [3]]),
        (["▁我", "<un", "k>"], ["我", "<", "unk", ">"], [[0], [1], [1, 2], [2]]),
        (["▁", "▁"], [""], [[0, 1]]),
        ([], [], []),
        (
            ["▁我", "喜欢", "图书馆", "的", "书"],
            ["我", "喜", "欢", "图", "书", "馆", "的", "书"],
            [[0], [1], [1], [2], [2], [2], [3], [4]],
        ),
        (["▁", "我们", "。"], ["我", "们", "。"], [[0, 1], [1], [2]]),
        (["▁我们", "\u3000", "书"], ["我", "们", "书"], [[0], [0, 1], [2]]),
        (["▁a", "b我", "c.", "▁d", "."], ["ab", "我", "c", ".", "d."],
         [[0, 1], [1], [2], [2], [3, 4]]),
        (["▁我", "<unk>", "书x", "<unk>"], ["我", "<unk>", "书", "x", "<unk>"],
         [[0], [1], [2], [2], [3]]),
        (["▁", "<unk>", "书"], ["<unk>", "书"], [[0, 1], [2]]),
        (["▁ไม", "่น", "้ำ"], ["ไ", "ม่", "น้ำ"], [[0], [0, 1], [1, 2]]),
        (["我", "ok", "图书", "น", "้"], ["我", "ok", "图", "书", "น้"],
         [[0], [1], [2], [2], [3, 4]]),
    ],
)  # fmt: skip
def test_words_of_pieces(pieces, words, members):
    special = {place for place, piece in enumerate(pieces) if piece == "<unk>"}
    assert words_of_pieces(pieces, special=special) == (words, members)


def test_text_that_spells_a_special_token_is_text():
    vocabulary = SubwordVocabulary.train(["书<unk>书 <s> a"] * 5, 40)
    text = "书<unk>书 <s> a"
    ids = [*vocabulary.encode(text), 2]
    words, members = words_of_pieces(vocabulary.tokens(ids[:-1]))
    assert words == ["书", "<", "unk", ">", "书", "<s>", "a"]
    assert word_pieces(vocabulary, ids) == word_pieces(vocabulary, ids, text) == members


@pytest.mark.parametrize(
    ("pieces", "words", "members"),
    [
        (["▁我", "喜", "▁喜欢", "书", "。"], ["我喜", "喜欢书。"], [[0, 1], [2, 3, 4]]),
        (["▁ไม", "่น", "▁้ำa"], ["ไม่น", "้ำa"], [[0, 1], [2]]),
        (["▁a", "▁书"], ["a", "书"], [[0], [1]]),
    ],
)
def test_words_of_pieces_of_a_text_that_is_given_in_words(pieces, words, members):
    assert words_of_pieces(pieces, given_words=True) == (words, members)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["我 喜欢 图书馆 的 书 。", "我 喜欢 书"], ["我们", "喜欢", "图书馆。"]),
        (["ฉัน ชอบ หนังสือ", "ไม่ ชอบ"], ["ฉัน", "หนังสือ", "ไม่ชอบ"]),
        (["私 は 本 を 読み ます 。"], ["本", "は", "読みます"]),
    ],
)
def test_a_text_given_in_words_has_these_words(lines, words, tmp_path):
    SubwordVocabulary.train([*lines, "".join(words)] * 3, 90).save(tmp_path)
    vocabulary, text = SubwordVocabulary.load(tmp_path), " ".join(words)
    assert vocabulary.given_words
    ids = [*vocabulary.encode(text), 2]
    for found in (word_pieces(vocabulary, ids, text), word_pieces(vocabulary, ids)):
        assert len(found) == 3
    unspaced = SubwordVocabulary.train([line.replace(" ", "") for line in lines] * 3, 60)
    assert not unspaced.given_words
    assert len(word_pieces(unspaced, [*unspaced.encode(text), 2], text)) > 3


@hypothesis.given(st.lists(st.text("▁a.我书ม่ \u3000", min_size=1), max_size=6))
def test_every_piece_has_a_word_and_every_word_a_piece(pieces):
    words, members = words_of_pieces(pieces)
    assert len(words) == len(members) and all(members)
    assert sorted(set().union(*members)) == [*range(len(pieces))]


def test_words_of_subwords_are_those_that_aligners_link():
    vocabulary = SubwordVocabulary.train(LINES * 3, 60)
    # The third has a character that the vocabulary does not know, the fourth two of them.
    for text in [*LINES[:2], "我们喜欢书", "我爱猫书", "ชอบหนังสือ"]:
        ids = [*vocabulary.encode(text), 2]
        expected = overlaps(words_of_text(text), vocabulary.surfaces(text))
        found = word_pieces(vocabulary, ids, text)
        assert len(found) == len(expected) >= 4
        for pieces, its_pieces in zip(expected, found, strict=True):
            assert set(pieces) <= set(its_pieces)  # beside it may be the sign of a space


def test_an_unknown_piece_of_an_output_is_a_word():
    vocabulary = SubwordVocabulary.train(LINES * 3, 60)
    ids = [*vocabulary.encode("我爱猫书"), 2]
    assert len(word_pieces(vocabulary, ids, "我爱猫书")) == 4
    assert len(word_pieces(vocabulary, ids)) == 3
    assert word_pieces(vocabulary, [2]) == []


def test_letters_of_these_scripts_stand_inside_of_brackets():
    assert words_of_text("]^-\\" + LETTERS[:1]) == ["]", "^", "-", "\\", LETTERS[:1]]
