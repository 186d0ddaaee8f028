"""Unicode characters that words are told by, of which Python's patterns know too little.

To `re` a combining mark is no part of a word, and a space without width is no white space.
"""

import itertools
import unicodedata
from collections.abc import Iterator

SPACE = "\u2581"  # begins a subword that begins a word; in a text, subwords take it for a space
# What separates words as white space does, and is part of none however a text is cut up.
SEPARATORS = f"\u200b{SPACE}"
# Where Unicode has marks; looking at all of its characters would take a tenth of a second.
_PLACES = (range(0x0300, 0x20000), range(0xE0000, 0xE1000))


def _marks() -> Iterator[str]:
    """Yields the characters of category M, as ranges."""
    numbers = (
        number
        for place in _PLACES
        for number in place
        if unicodedata.category(chr(number))[0] == "M"
    )
    count = itertools.count()
    for _, run in itertools.groupby(numbers, key=lambda number: number - next(count)):
        first, *rest = run
        yield f"{chr(first)}-{chr(rest[-1] if rest else first)}"


# Inside of brackets, for patterns: marks, and the joiners that tell how letters are written.
COMBINING = "".join(_marks()) + "\u200c\u200d"


def run_of(letter: str) -> str:
    """Returns the pattern of a run of letters with what combines with them.

    Args:
      letter: The pattern of one letter, which matches nothing that combines.
    """
    # The long list is not looked through for what follows most runs.
    return rf"{letter}+(?:(?=[^\0-\u02ff])[{COMBINING}]{letter}*)*"
