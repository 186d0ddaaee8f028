"""Unicode characters that make or separate words, as far as Python's `re` does not know them.

For `re`, a combining mark is no part of a word, and a zero-width space is no white space.
"""

import itertools
import unicodedata
from collections.abc import Iterator

# The first character of a subword that begins a word; older subword models read it as a space.
SPACE = "\u2581"
# Separators of words beside white space; they belong to no word.
SEPARATORS = f"\u200b{SPACE}"
# Where Unicode has marks: going through all of its characters would take a tenth of a second.
_PLACES = (range(0x0300, 0x20000), range(0xE0000, 0xE1000))


def _marks() -> Iterator[str]:
    """Yields the characters of category M, as ranges."""
    numbers = (
        number
        for place in _PLACES
        for number in place
        if unicodedata.category(chr(number))[0] == "M"
    )
    # Among consecutive numbers, number minus position is constant.
    count = itertools.count()
    for _, run in itertools.groupby(numbers, key=lambda number: number - next(count)):
        first, *rest = run
        yield f"{chr(first)}-{chr(rest[-1] if rest else first)}"


# To be used inside of brackets in a pattern: marks, and joiners that decide how letters are drawn.
COMBINING = "".join(_marks()) + "\u200c\u200d"


def run_of(letter: str) -> str:
    """Returns a pattern for a run of letters with their combining marks.

    Args:
      letter: Pattern of one letter, which must not match any mark.
    """
    # Most runs are followed by a character below U+0300, of which none is a mark: the lookahead
    # spares them the search through the long list of marks.
    return rf"{letter}+(?:(?=[^\0-\u02ff])[{COMBINING}]{letter}*)*"
