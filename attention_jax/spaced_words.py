"""Words as files of alignments count them: what stands between spaces and tabs, and nothing else.

No-break and ideographic spaces and the like are characters of words, or words of their own: they
separate nothing for fast_align, GIZA++, eflomal and other programs that write links. Python's
`str.split` takes them for separators, and all links after them would be of other words.
"""

import re

SPACES = " \t"
_BETWEEN = re.compile(f"[{SPACES}]+")


def spaced_words(text: str) -> list[str]:
    """Splits a text at spaces and tabs."""
    return [word for word in _BETWEEN.split(text) if word]


def strip_spaces(text: str) -> str:
    """Removes spaces and tabs around a text; other white space may be one of its words."""
    return text.strip(SPACES)
