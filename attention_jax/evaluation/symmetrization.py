"""One alignment from the alignments of both directions.

Links are (source, target) pairs in both. Growing scans the links by source position, then by target
position, again and again until a scan adds nothing; a link that is added counts at once, so the
order of the scan and of the neighbours decides between links that exclude each other.
"""

from collections.abc import Collection, Set

Link = tuple[int, int]
Links = frozenset[Link]

METHODS = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and")
# Tools differ in this order, and so in a link or two of a thousand. With this one the published
# alignments that the tests know come out link by link.
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, 1), (-1, -1), (1, -1), (1, 1))


def symmetrize(
    forward: Collection[Link], reverse: Collection[Link], method: str, *, strict: bool = False
) -> Links:
    """Combines two alignments by one of `METHODS`.

    Args:
      forward: Links of one direction; where links exclude each other, its come first.
      reverse: Links of the other, (source, target) as well.
      method: One of `METHODS`.
      strict: See `grow_diag`; without effect on intersection and union.

    Raises:
      ValueError: If there is no such method.
    """
    match method:
        case "intersection":
            return intersection(forward, reverse)
        case "union":
            return union(forward, reverse)
        case "grow-diag":
            return grow_diag(forward, reverse, strict=strict)
        case "grow-diag-final":
            return grow_diag_final(forward, reverse, strict=strict)
        case "grow-diag-final-and":
            return grow_diag_final_and(forward, reverse, strict=strict)
    raise ValueError(f"expected one of {', '.join(METHODS)}, found {method!r}")


def intersection(forward: Collection[Link], reverse: Collection[Link]) -> Links:
    """Keeps the links that both directions have."""
    return frozenset(forward) & frozenset(reverse)


def union(forward: Collection[Link], reverse: Collection[Link]) -> Links:
    """Takes the links that either direction has."""
    return frozenset(forward) | frozenset(reverse)


def grow_diag(
    forward: Collection[Link], reverse: Collection[Link], *, strict: bool = False
) -> Links:
    """Grows the intersection by links of the union beside it, diagonally too.

    Args:
      forward: Links of one direction.
      reverse: Links of the other.
      strict: Whether a neighbour is added only if neither of its words is linked yet; otherwise
        one such word suffices.

    Source:
      Koehn, Och and Marcu 2003, on the alignment heuristic: one free word suffices. The scripts of
      Zenkel, Wuebker and DeNero 2019 are strict; their grow-diagonal-final is what is called
      grow-diag-final-and here, strict.
    """
    candidates = union(forward, reverse)
    links = set(intersection(forward, reverse))
    scan, before = sorted(candidates), -1
    while len(links) > before:
        before = len(links)
        for source, target in scan:
            if (source, target) not in links:
                continue
            for down, across in _NEIGHBOURS:
                neighbour = (source + down, target + across)
                if neighbour in candidates and _is_free(neighbour, links, both=strict):
                    links.add(neighbour)
    return frozenset(links)


def grow_diag_final(
    forward: Collection[Link], reverse: Collection[Link], *, strict: bool = False
) -> Links:
    """Adds links of either direction to `grow_diag`'s if one of their words is not linked yet."""
    return _final(grow_diag(forward, reverse, strict=strict), forward, reverse, both=False)


def grow_diag_final_and(
    forward: Collection[Link], reverse: Collection[Link], *, strict: bool = False
) -> Links:
    """Adds links of either direction to `grow_diag`'s if neither of their words is linked yet."""
    return _final(grow_diag(forward, reverse, strict=strict), forward, reverse, both=True)


def _final(grown: Links, *directions: Collection[Link], both: bool) -> Links:
    links = set(grown)
    for direction in directions:
        for link in sorted(direction):
            if _is_free(link, links, both=both):
                links.add(link)
    return frozenset(links)


def _is_free(link: Link, links: Set[Link], *, both: bool) -> bool:
    source_free = all(source != link[0] for source, _ in links)
    target_free = all(target != link[1] for _, target in links)
    return source_free and target_free if both else source_free or target_free
