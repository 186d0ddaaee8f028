"""Word aligners (IBM Model 1, HMM, agreement, spelling, eflomal) by name, in either direction."""

import importlib.metadata
from collections.abc import Callable, Mapping, Sequence

from attention_jax.data.alignment import agreement, eflomal, hmm, ibm1, spelling
from attention_jax.data.alignment.bitext import Links, Sentence
from attention_jax.data.alignment.ibm1 import Report
from attention_jax.errors import UserError

DIRECTIONS = ("forward", "reverse")
# Time and memory of a pair grow with the product of its lengths, and an aligner learns nothing from
# a "sentence" that is longer than this.
MAX_WORDS = 200
# Raise it with any change by which an aligner links the same text differently: caches depend on it.
_REVISION = 2
_SETTINGS: dict[str, tuple] = {
    "ibm1": (ibm1.ITERATIONS, ibm1.SMOOTHING),
    "hmm": (
        ibm1.ITERATIONS,
        ibm1.SMOOTHING,
        hmm.ITERATIONS,
        hmm.NULL_PROBABILITY,
        hmm.UNIFORM_SHARE,
    ),
}
_SETTINGS["agreement"] = (*_SETTINGS["hmm"], agreement.ITERATIONS)
_SETTINGS["spelling"] = (*_SETTINGS["agreement"], *spelling.SETTINGS)


def signature(method: str) -> str:
    """Cache key: describes everything but the text on which an aligner's links depend."""
    settings: tuple = _SETTINGS.get(method, ())
    if method == "eflomal":
        try:
            settings = (importlib.metadata.version("eflomal"),)
        except importlib.metadata.PackageNotFoundError:
            pass  # `align` will say that it is missing
    return f"{method} {_REVISION} {MAX_WORDS} {settings}"


def align(
    sources: Sequence[Sentence],
    targets: Sequence[Sentence],
    method: str,
    directions: Sequence[str] = DIRECTIONS,
    report: Report = lambda line: None,
) -> list[list[Links]]:
    """Word alignment: trains an aligner on a parallel corpus, and links the words of that corpus.

    Args:
      sources: Sentences as words.
      targets: The translation of each.
      method: One of `METHODS`.
      directions: The directions, trained separately. In `forward` a target word has at most one
        link, to the source word from which it comes; in `reverse` a source word has at most one.
      report: Called with lines about the progress.

    Returns:
      For each direction the links of every pair, as (source, target) in both directions. A pair has
      none if a side is empty or has more than `MAX_WORDS` words.

    Raises:
      UserError: If there is nothing to align, or the method is not installed, or fails.
    """
    sources, targets, usable = usable_pairs(sources, targets)
    if not any(usable):
        raise UserError(f"expected pairs of 1 to {MAX_WORDS} words on both sides, found none")
    found = METHODS[method](sources, targets, directions, report)
    report_unusable(usable, report)
    return found


def usable_pairs(
    sources: Sequence[Sentence], targets: Sequence[Sentence]
) -> tuple[list[Sentence], list[Sentence], list[bool]]:
    """Returns both sides, and which pairs have 1 to `MAX_WORDS` words on each.

    Other pairs become empty ones, so that every pair keeps its number.
    """
    usable = [
        min(len(source), len(target)) > 0 and max(len(source), len(target)) <= MAX_WORDS
        for source, target in zip(sources, targets, strict=True)
    ]
    first, second = (
        [sentence if use else () for sentence, use in zip(side, usable, strict=True)]
        for side in (sources, targets)
    )
    return first, second, usable


def report_unusable(usable: Sequence[bool], report: Report) -> None:
    """Reports how many pairs are not usable, if there are any."""
    if not all(usable):
        report(
            f"{usable.count(False)} of {len(usable)} pairs have no links: a side is empty or has "
            f"more than {MAX_WORDS} words"
        )


def prefixed(report: Report, direction: str) -> Report:
    """Returns a report that puts the direction before each line."""
    return lambda line: report(f"{direction}  {line}")


def turned(links: Sequence[Links]) -> list[Links]:
    """Returns as (source, target) what is (target, source)."""
    return [sorted((source, target) for target, source in each) for each in links]


def _one_by_one(align_one: Callable) -> Callable:
    """Makes an aligner of both directions of one that knows a single direction."""

    def align_each(sources, targets, directions, report):
        found = []
        for direction in directions:
            sides = (sources, targets) if direction == "forward" else (targets, sources)
            links = align_one(*sides, prefixed(report, direction))
            found.append(links if direction == "forward" else turned(links))
        return found

    return align_each


def _both_at_once(align_both: Callable) -> Callable:
    """Makes an aligner of the directions asked for of one that trains both together."""

    def align_each(sources, targets, directions, report):
        reports = prefixed(report, "forward"), prefixed(report, "reverse")
        forward, reverse = align_both(sources, targets, reports)
        found = {"forward": forward, "reverse": turned(reverse)}
        return [found[direction] for direction in directions]

    return align_each


METHODS: Mapping[str, Callable] = {
    "ibm1": _one_by_one(ibm1.align),
    "hmm": _one_by_one(hmm.align),
    "agreement": _both_at_once(agreement.align),
    "spelling": _both_at_once(spelling.align),
    "eflomal": _one_by_one(eflomal.align),
}
