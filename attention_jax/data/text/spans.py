"""Token alignment by characters: which words and tokens of the same text overlap."""

import re
from collections.abc import Sequence

from attention_jax.data.text.characters import SEPARATORS
from attention_jax.spaced_words import SPACES

_SPACES = re.compile(rf"[\s{SEPARATORS}]+")
_WORDS_OWN = re.compile(rf"[^\S{SPACES}]")  # white space that may be in a word, or be one


def overlaps(words: Sequence[str], tokens: Sequence[str]) -> list[list[int]]:
    """Token alignment: finds the tokens with which each word shares characters.

    White space and other separators of words (see `characters`) are ignored where only one of the
    two has them. Where both have them inside of a word, they belong to the word.

    Args:
      words: A text, divided in one way.
      tokens: The same text, divided in another way.

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
    # The token of every character, so that a word's tokens are those of a slice.
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
            # The next character like this one, skipping white space only; if anything else is in
            # between, this is white space that tokens do not have.
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
