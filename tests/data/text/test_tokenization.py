import hypothesis
import hypothesis.strategies as st
import pytest

from attention_jax.data.text.tokenization import JOINER, detokenize, tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, world!", ["Hello", "￭,", "world", "￭!"]),
        ('the "end"...', ["the", '"￭', "end", '￭"', "￭.", "￭.", "￭."]),
        ("(3-4)", ["(￭", "3", "￭-￭", "4", "￭)"]),
        ("a - b", ["a", "-", "b"]),
        ("Käse 猫", ["Käse", "猫"]),
        ("", []),
    ],
)
def test_tokenize_marks_where_punctuation_was_joined(text, tokens):
    assert tokenize(text) == tokens


@hypothesis.given(st.text(st.characters(exclude_characters=JOINER, exclude_categories=["Cs"])))
def test_detokenize_undoes_tokenize(text):
    assert detokenize(tokenize(text)) == " ".join(text.split())
