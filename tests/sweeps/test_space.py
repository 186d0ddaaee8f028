"""What a search may try, as a command line says it."""

import pytest

from attention_jax.errors import UserError
from attention_jax.sweeps.space import Names, Range, read_space


def test_ranges_and_names_are_read():
    texts = ("a.rate=1e-4..1e-2:log", "config.b=2..8", "c=0.0..1", "d=x|none | y", "e=-3..3")
    assert read_space(texts) == {
        "a.rate": Range(1e-4, 1e-2, is_log=True),
        "b": Range(2, 8, is_whole=True),
        "c": Range(0, 1),
        "d": Names(("x", "none", "y")),
        "e": Range(-3, 3, is_whole=True),
    }


def test_ends_are_as_a_command_line_has_them():
    assert Range(2.0, 8.0, is_whole=True).ends == ("2", "8")
    assert Range(1e-4, 0.5).ends == ("0.0001", "0.5")
    assert Names(("a", "b")).ends == ("a", "b")


@pytest.mark.parametrize(
    "text",
    ["", "a", "a=1", "a=1..", "a=2..1", "a=0..1:log", "a=1..2:lin", "a=x|", "a=x|x", "a=1..1e999"],
)
def test_what_is_no_space_is_one_line(text):
    with pytest.raises(UserError, match=r"--search: expected FIELD=LOW..HIGH, .* found '"):
        read_space([text])


def test_a_field_is_searched_for_once():
    with pytest.raises(UserError, match="expected every field once, found a twice"):
        read_space(["a=1..2", "config.a=x|y"])
