"""Words and tokens of the same text."""

import pytest

from attention_jax.data.text.spans import overlaps


@pytest.mark.parametrize(
    ("words", "tokens", "expected"),
    [
        (["ab", "c"], ["ab", "c"], [[0], [1]]),
        (["ab", "c", "."], [" a", "b", " c."], [[0, 1], [2], [2]]),
        (["abc"], ["a", "", " ", "bc"], [[0, 3]]),
        (["don", "'", "t"], ["do", "n't"], [[0, 1], [1], [1]]),
        (["a", "b", "c"], ["a\u200bb", " ", "c"], [[0], [0], [2]]),
        (["a", "b", "▁"], ["a", "▁", " b", " "], [[0], [2], []]),
        # White space of words: where tokens have it, and where they lack it.
        (["a", "\u3000", "b"], ["a", " \u3000", " b"], [[0], [1], [2]]),
        (["a\u00a0b", "\u3000", "c"], ["a", "\u00a0", "b", " ", "c"], [[0, 1, 2], [], [4]]),
        (["a\u00a0b", "\u3000", "c"], ["a", "b", "c"], [[0, 1], [], [2]]),
        (["a", "b"], ["a", "\u00a0", "b"], [[0], [2]]),
        ([], [], []),
    ],
)
def test_overlaps(words, tokens, expected):
    assert overlaps(words, tokens) == expected


def test_another_text_is_rejected():
    with pytest.raises(ValueError, match="expected the text 'abc', found 'abd'"):
        overlaps(["ab", "c"], ["abd"])
