"""Diagnoses: what the statistics of a validation say is wrong with a run, a line each.

The list is open: a diagnosis is a name, the statistics that it reads, a test on them, and a line.
docs/runs.md has a section for each, by its name.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

Statistics = Mapping[str, float]

_PAGE = "docs/runs.md"

@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Diagnosis: a test on statistics, and what is said where it holds.

    Attributes:
      name: The heading of its section in docs/runs.md, in small letters.
      reads: The statistics that it reads; where one of them was not measured, it is not made.
      holds: The test.
      line: What is wrong, with statistics in braces.
      after: Share of the training before which what it finds is nothing unusual.
    """

    name: str
    reads: tuple[str, ...]
    holds: Callable[[Statistics], bool]
    line: str
    after: float = 0.1


DIAGNOSES = (
    Diagnosis(
        "flat attention", ("attention/entropy",),
        lambda found: found["attention/entropy"] >= 0.98,
        "attention is flat, with {attention/entropy:.1%} of the entropy of equal weights: it tells "
        "no source position from another",
    ),
    Diagnosis(
        "attention to one slot", ("attention/one_slot",),
        lambda found: found["attention/one_slot"] >= 0.9,
        "attention stays on one slot of each source, which gets {attention/one_slot:.0%} of it "
        "whatever is written",
    ),
    Diagnosis(
        "an untrained diagonal", ("attention/diagonal", "accuracy"),
        lambda found: found["attention/diagonal"] >= 0.9 and found["accuracy"] < 0.25,
        "attention is a diagonal that nothing has been learnt with: {attention/diagonal:.0%} of it "
        "is on the slot of the target token's own number, and {accuracy:.0%} of tokens are right",
    ),
    Diagnosis(
        "empty outputs", ("outputs/empty",),
        lambda found: found["outputs/empty"] >= 0.5,
        "{outputs/empty:.0%} of the outputs are empty",
    ),
    Diagnosis(
        "outputs that are all alike", ("outputs/alike", "references/alike"),
        lambda found: found["outputs/alike"] >= max(0.5, 2 * found["references/alike"]),
        "{outputs/alike:.0%} of the outputs are one and the same text, and {references/alike:.0%} "
        "of the references",
    ),
    Diagnosis(
        "outputs that run to their limit", ("outputs/at_limit",),
        lambda found: found["outputs/at_limit"] >= 0.5,
        "{outputs/at_limit:.0%} of the outputs end only because they may not be longer",
    ),
    Diagnosis(
        "a small validation", ("validation/examples", "training/batch"),
        lambda found: found["validation/examples"] < found["training/batch"],
        "the examples of the validation ({validation/examples:,.0f}) are fewer than those of a "
        "batch ({training/batch:,.0f}): its numbers, and the best step by them, are mostly chance",
        after=0.0,
    ),
)  # fmt: skip


def diagnosed(statistics: Statistics, share: float = 1.0) -> Iterator[tuple[str, str]]:
    """Yields the name and the line of every diagnosis that statistics allow.

    Args:
      statistics: What has been measured, by name; more than is read here is no harm.
      share: How much of the training is over.
    """
    for diagnosis in DIAGNOSES:
        is_known = all(name in statistics for name in diagnosis.reads)
        if share >= diagnosis.after and is_known and diagnosis.holds(statistics):
            # By `format_map`, for names of statistics are no identifiers.
            line = diagnosis.line.format_map(dict(statistics))
            yield diagnosis.name, f"warning: {line}; {_PAGE}#{diagnosis.name.replace(' ', '-')}"
