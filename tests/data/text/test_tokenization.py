import re
import unicodedata

import hypothesis
import hypothesis.strategies as st
import pytest

from attention_jax.data.text.tokenization import JOINER, detokenize, surface, tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, world!", ["Hello", "￭,", "world", "￭!"]),
        ('the "end"...', ["the", '"￭', "end", '￭"', "￭.", "￭.", "￭."]),
        ("(3-4)", ["(￭", "3", "￭-￭", "4", "￭)"]),
        ("a - b", ["a", "-", "b"]),
        ("Käse 猫", ["Käse", "猫"]),
        ("cafe\u0301s!", ["cafe\u0301s", "￭!"]),
        ("हिन्दी العَرَبِيَّة", ["हिन्दी", "العَرَبِيَّة"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("ไม่ น้ำ", ["ไม่", "น้ำ"]),
        ("\u0301ab .\u0301c", ["\u0301￭", "ab", ".", "￭\u0301￭", "c"]),
        ("ab\u200bc", ["ab", "￭\u200b￭", "c"]),
        ("❤\ufe0f a_1\u20e3", ["❤", "￭\ufe0f", "a_1\u20e3"]),
        ("", []),
    ],
)
def test_tokenize_marks_where_punctuation_was_joined(text, tokens):
    assert tokenize(text) == tokens


def texts():
    """Of all characters, and often of those that are told apart."""
    some = ["a", "1_", " ", ",", JOINER, "e\u0301", "\u0301", "हि", "\u200b", "\u200c", "\x1f"]
    anything = st.characters(exclude_categories=["Cs"])
    return st.lists(st.sampled_from(some) | anything, max_size=12).map("".join)


@hypothesis.given(texts())
def test_detokenize_undoes_tokenize(text):
    assert detokenize(tokenize(text)) == " ".join(text.split())


@hypothesis.given(texts())
def test_surfaces_of_tokens_are_the_text(text):
    assert "".join(map(surface, tokenize(text))) == "".join(text.split())


def test_the_joiner_of_a_text_is_told_from_the_one_that_marks_tokens():
    for text in ("￭", "a￭b", "a￭", "￭b", "a ￭ b", "￭￭ ,￭"):
        assert detokenize(tokenize(text)) == text
    assert [surface(token) for token in tokenize("a￭b,")] == ["a", "￭", "b", ","]


@hypothesis.given(texts())
def test_without_marks_words_are_runs_of_letters_and_digits(text):
    """As they were before words had marks, for which saved vocabularies were made."""
    if not any(unicodedata.category(one)[0] == "M" or one in "\u200c\u200d" for one in text):
        assert [surface(token) for token in tokenize(text)] == re.findall(r"\w+|[^\w\s]", text)
