"""Pharaoh format: reads files of word alignments, one line a sentence pair, and their variants.

A link is `source-target`. In gold alignments that is a sure link, and `source?target` or
`sourceptarget` a possible one. Some tools write `source-target-S` and `source-target-P`, others
`source-target-score`; fast_align can write ` ||| score` after the links. Scores are ignored. Files
count words from 0 or from 1, links in memory always from 0.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from attention_jax.errors import DataError

Link = tuple[int, int]
_Parsed = TypeVar("_Parsed")

_SCORE = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?inf|[-+]?nan"
# Nine digits are more than any sentence needs, and keep a broken file from making huge integers.
_LINK = re.compile(rf"([0-9]{{1,9}})([-?p])([0-9]{{1,9}})(?:-(?:([SP])|{_SCORE}))?")
_LINE_SCORE = re.compile(rf"\|\|\|\s*(?:{_SCORE})\s*")
_NUMBERED = re.compile(r"[0-9]+\t")


@dataclasses.dataclass(frozen=True)
class MarkedLinks:
    """Sure and possible links of a sentence pair, as annotators mark them.

    Attributes:
      sure: S, links that an alignment must have.
      possible: P, links that it may have; contains S.
    """

    sure: frozenset[Link]
    possible: frozenset[Link]

    def turned(self) -> "MarkedLinks":
        """Returns the links of the opposite direction, target first."""
        return MarkedLinks(*(frozenset((t, s) for s, t in each)
                             for each in (self.sure, self.possible)))  # fmt: skip


def marked_links(sure: Iterable[Link], possible: Iterable[Link] = ()) -> MarkedLinks:
    """Sure and possible links: makes `MarkedLinks`, adding the sure ones to the possible ones."""
    sure = frozenset(sure)
    return MarkedLinks(sure, sure.union(possible))


def parse_lines(
    lines: Sequence[str],
    name: str,
    *,
    base: int = 0,
    lengths: Sequence[tuple[int, int]] | None = None,
) -> list[MarkedLinks]:
    """Pharaoh format: parses a file with one line for every sentence pair.

    Args:
      lines: Links in any of the forms above, in any order, with repetitions and any white space.
      name: What messages call the file.
      base: The number of a sentence's first word, 0 or 1.
      lengths: How many words the sentences of each pair have, (source, target), if known.

    Raises:
      DataError: Naming file and line, if something is no link, a word's number is below `base` or
        beyond its sentence, or the numbers of lines and lengths differ. If the whole file would
        fit its sentences when counted from 1, the message asks whether it is.
    """
    if lengths is not None and len(lines) != len(lengths):
        raise DataError(
            f"{name}: expected {len(lengths)} lines, one for each pair of the text, found "
            f"{len(lines)}"
        )

    def parse(base: int) -> list[MarkedLinks]:
        return [
            parse_line(
                line,
                f"{name}:{number}",
                base=base,
                lengths=None if lengths is None else lengths[number - 1],
            )
            for number, line in enumerate(lines, start=1)
        ]

    return _or_ask_for_base_one(parse, base)


def parse_gold(
    lines: Sequence[str],
    name: str,
    *,
    base: int = 0,
    lengths: Sequence[tuple[int, int]] | None = None,
) -> dict[int, MarkedLinks]:
    """Gold alignments: parses the links of all sentence pairs of a test set, or of some.

    Args:
      lines: As for `parse_lines`; or, for some of the sentence pairs, `NUMBER<TAB>LINKS` with pairs
        numbered from 0, and comment lines that start with #.
      name: What messages call the file.
      base: The number of a sentence's first word, 0 or 1.
      lengths: How many words the sentences of each pair of the test set have, if known.

    Returns:
      Links by the number of their pair.

    Raises:
      DataError: As `parse_lines`; also where a pair's number is missing, too large, or repeated.
    """
    if not is_numbered(lines):
        return dict(enumerate(parse_lines(lines, name, base=base, lengths=lengths)))
    return _or_ask_for_base_one(lambda base: _parse_numbered(lines, name, base, lengths), base)


def _parse_numbered(
    lines: Sequence[str], name: str, base: int, lengths: Sequence[tuple[int, int]] | None
) -> dict[int, MarkedLinks]:
    found: dict[int, MarkedLinks] = {}
    for row, line in enumerate(lines, start=1):
        if line.startswith("#"):
            continue
        number, tab, links = line.partition("\t")
        if not (tab and re.fullmatch("[0-9]{1,9}", number)):
            raise DataError(f"{name}:{row}: expected a number, a tab, links, found {line[:40]!r}")
        pair = int(number)
        if pair in found or (lengths is not None and pair >= len(lengths)):
            known = "every pair once" if pair in found else f"pairs below {len(lengths or ())}"
            raise DataError(f"{name}:{row}: expected {known}, found {pair}")
        size = None if lengths is None else lengths[pair]
        found[pair] = parse_line(links, f"{name}:{row}", base=base, lengths=size)
    return found


def may_count_from_one(links: Iterable[MarkedLinks]) -> bool:
    """Word numbering: says whether links could be counted from 1, for none names a word 0."""
    found = [link for each in links for link in each.possible]
    return bool(found) and min(map(min, found)) > 0


def is_numbered(lines: Iterable[str]) -> bool:
    """Says whether a file has the numbered form of `parse_gold`, a number before a tab."""
    return any(map(_NUMBERED.match, lines))


def parse_line(
    line: str, where: str, *, base: int = 0, lengths: tuple[int, int] | None = None
) -> MarkedLinks:
    """Pharaoh format: parses one line; see `parse_lines`. `where` begins its messages."""
    sure: set[Link] = set()
    possible: set[Link] = set()
    for word in _without_score(line).split():
        match = _LINK.fullmatch(word)
        if not match:
            raise DataError(f"{where}: expected links such as 0-1, 0?1 or 0p1, found {word!r}")
        link = (int(match[1]) - base, int(match[3]) - base)
        if min(link) < 0:
            raise DataError(
                f"{where}: expected words counted from {base}, found {word!r}; "
                f"should the base be 0?"
            )
        if lengths is not None and (link[0] >= lengths[0] or link[1] >= lengths[1]):
            raise _OutsideError(
                f"{where}: expected words of sentences of {lengths[0]} and {lengths[1]} words "
                f"counted from {base}, found {word!r}"
            )
        # A letter says P of a link that a hyphen alone would make a sure one.
        is_sure = match[2] == "-" and match[4] != "P"
        (sure if is_sure else possible).add(link)
    return marked_links(sure, possible)


def _without_score(line: str) -> str:
    """Removes the ` ||| score` that fast_align writes after the links when asked for scores."""
    links, bars, _ = line.partition("|||")
    # Bars followed by anything else stay, so that parsing complains of them.
    return links if bars and _LINE_SCORE.fullmatch(line[len(links) :]) else line


def transposed(links: MarkedLinks) -> MarkedLinks:
    """Transposition: swaps the two sides of all links, to read an aligner's opposite direction."""
    return MarkedLinks(
        frozenset((source, target) for target, source in links.sure),
        frozenset((source, target) for target, source in links.possible),
    )


class _OutsideError(DataError):
    """A link lies outside of its sentences."""


def _or_ask_for_base_one(parse: Callable[[int], _Parsed], base: int) -> _Parsed:
    """Calls `parse(base)`; where only counting from 1 makes all links fit, the error says so."""
    try:
        return parse(base)
    except _OutsideError as error:
        if base == 1:  # no lower numbering is left to suggest
            raise
        try:
            parse(1)
        except DataError:
            raise error from None
        raise DataError(f"{error}; should the base be 1?") from None
