"""Splits that depend on an example's text only, so that they never change."""

import hashlib


def fraction(text: str) -> float:
    """Maps a text to a fixed number in [0, 1), uniform over texts."""
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def split_of(text: str, *, validation: float, test: float) -> str:
    """Returns the split of a text when these fractions of all texts are held out."""
    position = fraction(text)
    if position < test:
        return "test"
    return "validation" if position < test + validation else "train"
