"""Words between spaces: no other white space separates them."""

import ast
from pathlib import Path

import pytest

from attention_jax.spaced_words import spaced_words, strip_spaces

OTHERS = "\u00a0\u3000\u2009\u202f\u1680\u2028\u0085\x0b\x0c\x1c\r\n"


def test_spaces_and_tabs_separate_words():
    assert spaced_words(" a b\t\tc \t d\t") == ["a", "b", "c", "d"]
    assert spaced_words("") == spaced_words(" \t ") == []


@pytest.mark.parametrize("space", OTHERS)
def test_other_white_space_is_of_words_or_a_word(space):
    assert spaced_words(f"{space} a{space}b {space} c") == [space, f"a{space}b", space, "c"]
    assert strip_spaces(f" \t{space} a{space}\t ") == f"{space} a{space}"


@pytest.mark.parametrize("package", ["attention_jax", "experiments", "launch"])
def test_nobody_counts_words_at_other_white_space(repository, package):
    """`len(text.split())` and `str.split` as a function; of messages words are not counted."""
    found = []
    for path in sorted(Path(repository, package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_count = (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", "") == "len"
                and any(map(_splits, node.args))
            )
            is_function = (
                isinstance(node, ast.Attribute)
                and node.attr == "split"
                and getattr(node.value, "id", "") == "str"
            )
            if is_count or is_function:
                found.append(f"{path}:{node.lineno}")
    assert not found


def _splits(node):
    return (
        isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "split"
        and not node.args
        and not node.keywords
    )
