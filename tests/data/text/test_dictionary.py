"""Dictionaries of words: what is read, and what is refused with file and line."""

import pytest

from attention_jax.data.text.dictionary import read_dictionary
from attention_jax.errors import DataError


def test_reads_columns_and_takes_the_first_of_several(tmp_path):
    path = tmp_path / "words.tsv"
    path.write_text("Haus\thouse\n\nHaus\thome\nneu York\tNew York\r\n", encoding="utf-8")
    assert read_dictionary(path) == {"Haus": "house", "neu York": "New York"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\tb\nHaus house\n", "words.tsv:2: expected SOURCE<TAB>TARGET, found 'Haus house'"),
        ("a\tb\tc\n", "words.tsv:1: expected SOURCE<TAB>TARGET"),
        ("a\t \n", "words.tsv:1: expected SOURCE<TAB>TARGET"),
        ("", "words.tsv: expected one sentence a line, found an empty file"),
    ],
)
def test_refuses_what_is_no_dictionary(tmp_path, text, words):
    path = tmp_path / "words.tsv"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        read_dictionary(path)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_refuses_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="none.tsv: expected a text file, found none"):
        read_dictionary(tmp_path / "none.tsv")
