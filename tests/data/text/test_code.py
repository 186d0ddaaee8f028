"""Words of code: quoted strings are whole, operators too, and spaces say nothing."""

import gzip
import re

import pytest

from attention_jax.data.text.code import code_words, spaced_code
from attention_jax.data.text.vocabulary import SymbolVocabulary


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('re.match("a b",x)!=1', ["re", ".", "match", "(", '"a b"', ",", "x", ")", "!=", "1"]),
        ("x **= 1.5e-3 // .5", ["x", "**=", "1.5e-3", "//", ".5"]),
        ("d ['it\\'s', r\"\\d\", u'']", ["d", "[", r"'it\'s'", ",", r'r"\d"', ",", "u''", "]"]),
        ('f("""a "b" c""", \'\'\'d\'\'\')', ["f", "(", '"""a "b" c"""', ",", "'''d'''", ")"]),
        ("opponent's weapon.", ["opponent", "'", "s", "weapon", "."]),
        ("is settings.CACHES,", ["is", "settings", ".", "CACHES", ","]),
        ("if é_1 -> ...", ["if", "é_1", "->", "..."]),
        ("", []),
    ],
)
def test_words_of_code(text, words):
    assert code_words(text) == words
    assert code_words(spaced_code(text)) == words


def test_code_is_a_kind_of_vocabulary():
    """Decoding puts a space between words, as the normal form has it."""
    vocabulary = SymbolVocabulary.train("code", ['f("a b")', "g ( x )"])
    ids = vocabulary.encode('g("a b")')
    assert vocabulary.decode(ids) == 'g ( "a b" )' == spaced_code('g("a b")')


def test_the_words_of_real_lines_are_those_between_spaces(real_data):
    """The published lines have a space after each word: nothing is cut, and nothing joined."""
    lines = gzip.open(real_data / "django_code" / "all.code.gz", "rt", encoding="utf-8")
    for line in lines:
        assert re.sub(r"\s+", " ", spaced_code(line)) == " ".join(line.split())
