"""Which words and tokens share characters, when the same text is cut up in two ways."""

import re
from collections.abc import Sequence

from attention_jax.data.text.characters import SEPARATORS

_SPACES = re.compile(rf"[\s{SEPARATORS}]+")


def overlaps(words: Sequence[str], tokens: Sequence[str]) -> list[list[int]]:
    """Finds the tokens that each word shares characters with.

    White space does not count, nor does what separates words as it does (see `characters`).

    Args:
      words: A text, cut up one way.
      tokens: The same text, cut up another way.

    Returns:
      For each word the indices of its tokens, in order.

    Raises:
      ValueError: If the two are not the same text.
    """
    words, tokens = ([_SPACES.sub("", part) for part in parts] for parts in (words, tokens))
    if "".join(words) != "".join(tokens):
        raise ValueError(f"expected the text {''.join(words)!r}, found {''.join(tokens)!r}")
    owners = [index for index, token in enumerate(tokens) for _ in token]
    found, start = [], 0
    for word in words:
        found.append(sorted(set(owners[start : start + len(word)])))
        start += len(word)
    return found
