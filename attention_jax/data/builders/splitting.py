"""Splits that depend on an example's text only, so that they never change."""

import hashlib
import statistics
from collections.abc import Mapping

from attention_jax.data.text.characters import SPACE

# Of the examples that are held out, a line has at most this share...
_MAX_LINE_SHARE = 0.01
# ... and of the different lines of a text, at most this one is held out.
_MAX_HELD_OUT_LINES = 0.25


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


def normal_form(text: str, *, lowercase: bool) -> str:
    """Returns what is left of a text's differences to others once it is cut up into tokens.

    Words keep no amount of white space, and older subwords take their sign of a space for one.

    Args:
      text: The text.
      lowercase: Whether texts are put in lower case first.
    """
    text = " ".join(text.replace(SPACE, " ").split())
    return text.lower() if lowercase else text


def held_out_sources(occurrences: Mapping[str, int], name: str, count: int) -> set[str]:
    """Chooses source lines whose examples are held out, whatever the order of the text.

    The lines with the smallest hashes are chosen, as long as their examples fit into `count`. A
    line that is repeated more often than half of the lines are, and has more than a hundredth of
    `count` examples, is left in training: held out, `OK.` would be most of what is measured. At
    least one line is chosen, and no more than a quarter of them, so that a text of few lines keeps
    something to learn from.

    Args:
      occurrences: How many examples each source line has.
      name: The split that they are held out for.
      count: How many examples to hold out.
    """
    usual = statistics.median_high(occurrences.values())
    most = max(int(count * _MAX_LINE_SHARE), usual)
    ranked = sorted(occurrences, key=lambda source: fraction(f"{name}\t{source}"))
    chosen: set[str] = set()
    total = 0
    for source in ranked:
        if len(chosen) >= _MAX_HELD_OUT_LINES * len(occurrences):
            break
        if occurrences[source] <= min(most, count - total):
            chosen.add(source)
            total += occurrences[source]
    return chosen or {min(ranked, key=lambda source: occurrences[source])}
