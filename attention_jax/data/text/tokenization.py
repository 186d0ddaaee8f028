"""Words and punctuation, and back to the same text.

Where two tokens stood together without a space, a joiner marks the side of the punctuation, as in
`Hello ￭, world ￭!`; joining is therefore exact, up to the amount of white space.
"""

import re

JOINER = "\uffed"
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"\w")


def tokenize(text: str) -> list[str]:
    """Splits a text into words and single punctuation characters, marked with joiners."""
    tokens: list[str] = []
    for chunk in text.split():
        pieces = _TOKEN.findall(chunk)
        for index, piece in enumerate(pieces):
            if _WORD.match(piece):
                tokens.append(piece)
                continue
            after_something = index > 0
            before_word = index + 1 < len(pieces) and _WORD.match(pieces[index + 1])
            tokens.append(
                (JOINER if after_something else "") + piece + (JOINER if before_word else "")
            )
    return tokens


def detokenize(tokens: list[str]) -> str:
    """Joins tokens into text, undoing `tokenize`."""
    text = " ".join(tokens)
    return text.replace(" " + JOINER, "").replace(JOINER + " ", "").replace(JOINER, "")
