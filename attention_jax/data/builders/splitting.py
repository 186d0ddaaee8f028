"""Train, validation and test splits by hashes of texts, so that they never change."""

import collections
import hashlib
import statistics
from collections.abc import Mapping
from typing import Any

from attention_jax.data.text.characters import SPACE
from attention_jax.errors import DataError

Pairs = list[tuple[Any, ...]]

_MAX_LINE_SHARE = 0.01  # of the held-out examples, that one repeated line may have
_MAX_HELD_OUT_LINES = 0.25  # of the different lines of a text, that may be held out
_MAX_HELD_OUT_FRACTION = 0.1  # of the training pairs, for each split without files


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


def hold_out(
    pairs: Pairs, name: str, count: int, where: str, *, lowercase: bool = False
) -> tuple[Pairs, Pairs]:
    """Takes `count` pairs out, all pairs of a source line together; see `held_out_sources`.

    Args:
      pairs: Sources, each with whatever belongs to it.
      name: The split that they are held out for.
      count: How many; at most a tenth of the pairs is taken.
      where: What messages call the text.
      lowercase: Whether sources that differ in case are the same line.

    Returns:
      (held out, left over), both in the file's order.

    Raises:
      DataError: If there are too few different source lines to hold any out.
    """
    count = min(count, int(len(pairs) * _MAX_HELD_OUT_FRACTION) or 1)
    keys = [normal_form(pair[0], lowercase=lowercase) for pair in pairs]
    occurrences = collections.Counter(keys)
    taken = held_out_sources(occurrences, name, count)
    if len(taken) == len(occurrences):
        raise DataError(
            f"{where}: expected enough different source lines to hold some out for {name}, "
            f"found {len(occurrences)}; give {name} files of their own"
        )
    held_out, left = [], []
    for key, pair in zip(keys, pairs, strict=True):
        (held_out if key in taken else left).append(pair)
    return held_out, left
