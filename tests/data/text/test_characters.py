"""Characters that words are told by, against the tables of Unicode."""

import re
import sys
import unicodedata

import pytest

from attention_jax.data.text.characters import COMBINING, run_of


def test_marks_are_those_of_unicode_and_joiners_combine_too():
    combining = re.compile(f"[{COMBINING}]")
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        expected = unicodedata.category(character)[0] == "M" or character in "\u200c\u200d"
        assert bool(combining.match(character)) == expected, f"{number:x}"


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("ab 12", ["ab"]),
        ("cafe\u0301s e\u0301", ["cafe\u0301s", "e\u0301"]),
        ("\u0301ab", ["ab"]),
        ("a\u0301\u0327", ["a\u0301\u0327"]),
        ("a1\u0301b", ["a", "b"]),
    ],
)
def test_runs_begin_with_a_letter(text, runs):
    assert re.findall(run_of("[a-z]"), text) == runs
