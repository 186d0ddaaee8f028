"""Train, validation and test splits by hashes of texts, so that they never change."""

import hashlib
import statistics
from collections.abc import Mapping

from attention_jax.data.text.characters import SPACE

_MAX_LINE_SHARE = 0.01  # of the held-out examples, that one repeated line may have
_MAX_HELD_OUT_LINES = 0.25  # of the different lines of a text, that may be held out


def fraction(text: str) -> float:
    """Hash split: maps a text to a fixed number in [0, 1), uniformly distributed over texts."""
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def split_of(text: str, *, validation: float, test: float) -> str:
    """Hash split: returns the split of a text if these fractions of all texts are held out."""
    position = fraction(text)
    if position < test:
        return "test"
    return "validation" if position < test + validation else "train"


def normal_form(text: str, *, lowercase: bool) -> str:
    """Normal form of a text: texts that tokenization cannot tell apart have the same.

    Words do not keep the amount of white space, and older subword models read U+2581 as a space.
    With `lowercase`, case is ignored too.
    """
    text = " ".join(text.replace(SPACE, " ").split())
    return text.lower() if lowercase else text


def held_out_sources(occurrences: Mapping[str, int], name: str, count: int) -> set[str]:
    """Held-out data: chooses source lines whose examples are held out, whatever their order.

    Lines with the smallest hashes are chosen while their examples fit into `count`. A line stays in
    training if it is repeated more often than half of the lines and has more than a hundredth of
    `count` examples: otherwise a line such as `OK.` could dominate a test set. At least one line
    and at most a quarter of them are chosen, so that short texts keep something to learn from.

    Args:
      occurrences: The number of examples of each source line.
      name: The split for which they are held out.
      count: How many examples to hold out.
    """
    usual = statistics.median_high(occurrences.values())
    most = max(int(count * _MAX_LINE_SHARE), usual)
    # With the split's name in the hash, validation and test choose different lines.
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
