"""Which words and tokens share characters, when the same text is cut up in two ways."""

import re
from collections.abc import Sequence

from attention_jax.data.text.characters import SEPARATORS
from attention_jax.spaced_words import SPACES

_SPACES = re.compile(rf"[\s{SEPARATORS}]+")
_WORDS_OWN = re.compile(rf"[^\S{SPACES}]")  # white space that may be of a word, or one


def overlaps(words: Sequence[str], tokens: Sequence[str]) -> list[list[int]]:
    """Finds the tokens that each word shares characters with.

    White space does not count, nor does what separates words as it does (see `characters`), where
    only one of the two has it; what tokens have of that in a word is the word's.

    Args:
      words: A text, cut up one way.
      tokens: The same text, cut up another way.

    Returns:
      For each word the indices of its tokens, in order.

    Raises:
      ValueError: If the two are not the same text.
    """
    given = words, tokens
    words, tokens = ([_SPACES.sub("", part) for part in parts] for parts in given)
    if "".join(words) != "".join(tokens):
        raise ValueError(f"expected the text {''.join(words)!r}, found {''.join(tokens)!r}")
    if _WORDS_OWN.search("".join(given[0])):
        return _overlaps_with_spaces(*given)
    owners = [index for index, token in enumerate(tokens) for _ in token]
    found, start = [], 0
    for word in words:
        found.append(sorted(set(owners[start : start + len(word)])))
        start += len(word)
    return found


def _overlaps_with_spaces(words: Sequence[str], tokens: Sequence[str]) -> list[list[int]]:
    """Matches character by character, leaving out white space that only one side has."""
    characters = [(character, index) for index, token in enumerate(tokens) for character in token]
    found, start = [], 0
    for word in words:
        its_tokens = set()
        for character in word:
            place = start
            while place < len(characters) and characters[place][0] != character:
                if not _SPACES.match(characters[place][0]):
                    place = len(characters)
                place += 1
            if place < len(characters):
                its_tokens.add(characters[place][1])
                start = place + 1
        found.append(sorted(its_tokens))
    return found
