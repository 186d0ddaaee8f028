"""Words of texts and of pieces: golden cases, and that both are the same words."""

import hypothesis
import hypothesis.strategies as st
import pytest

from attention_jax.data.text.scripts import LETTERS, writes_no_spaces
from attention_jax.data.text.spans import overlaps
from attention_jax.data.text.subwords import SubwordVocabulary
from attention_jax.data.text.tokenization import JOINER, tokenize
from attention_jax.data.text.words import word_pieces, words_of_pieces, words_of_text

LINES = ["我喜欢图书馆的书。", "我喜欢书", "图书馆的书", "ฉันชอบหนังสือ", "a new book 我"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我喜欢书。", ["我", "喜", "欢", "书", "。"]),
        ("我用Python3写 程序", ["我", "用", "Python3", "写", "程", "序"]),
        ("彼はパンを食べた!", [*"彼はパンを食べた!"]),
        ("ไม่ชอบ, 12", ["ไ", "ม่", "ช", "อ", "บ", ",", "12"]),
        ("Hello, ２０年 (von)", ["Hello", ",", "２０", "年", "(", "von", ")"]),
        ("", []),
    ],
)
def test_words_of_text(text, words):
    assert words_of_text(text) == words


@hypothesis.given(TEXTS.filter(lambda text: not writes_no_spaces(text)))
def test_words_of_other_scripts_are_those_of_the_vocabulary(text):
    assert words_of_text(text) == [token.replace(JOINER, "") for token in tokenize(text)]


@pytest.mark.parametrize(
    ("pieces", "words", "members"),
    [
        (["▁new", "er", "▁car", "s", "."], ["newer", "cars."], [[0, 1], [2, 3, 4]]),
        (["hou", "se", "▁is"], ["house", "is"], [[0, 1], [2]]),
        (["▁", "x", "▁", "y<"], ["x", "y<"], [[0, 1], [2, 3]]),
        (["▁a", "<unk>", "▁b"], ["a<unk>", "b"], [[0, 1], [2]]),
        (["K", "AE1", " "], ["K", "AE1", " "], [[0], [1], [2]]),
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
        (["我", "ok", "图书", "น", "้"], ["我", "ok", "图书", "น", "้"], [[0], [1], [2], [3], [4]]),
    ],
)  # fmt: skip
def test_words_of_pieces(pieces, words, members):
    assert words_of_pieces(pieces) == (words, members)


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
