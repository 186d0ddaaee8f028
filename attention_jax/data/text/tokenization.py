"""Tokenization into words and punctuation, and back to the same text.

Where two tokens stood together without a space, a joiner marks the side of the punctuation, as in
`Hello ￭, world ￭!`; joining is therefore exact, up to the amount of white space. A word has the
marks that combine with its letters. A space without width is a token of its own, since nobody
would see that it had become a space of another width.
"""

import re

from attention_jax.data.text.characters import run_of

JOINER = "\uffed"
_TOKEN = re.compile(run_of(r"\w") + r"|[^\w\s]")
_WORD = re.compile(r"\w")
_OWN_JOINER = "\x1f"  # a joiner of the text, in a token; white space, of which tokens have no other


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
                (JOINER if after_something else "")
                + piece.replace(JOINER, _OWN_JOINER)
                + (JOINER if before_word else "")
            )
    return tokens


def detokenize(tokens: list[str]) -> str:
    """Joins tokens into text, undoing `tokenize`."""
    text = " ".join(tokens)
    return surface(text.replace(" " + JOINER, "").replace(JOINER + " ", ""))


def surface(token: str) -> str:
    """Returns what a token has of its text, without the joiners that mark it."""
    return token.replace(JOINER, "").replace(_OWN_JOINER, JOINER)
