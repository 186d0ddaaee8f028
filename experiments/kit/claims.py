"""Claims of papers, held against what was measured here."""

import dataclasses
from collections.abc import Mapping, Sequence

from experiments.kit import measure_tables, seeds, tables
from experiments.kit.sentence_measures import MEASURES


@dataclasses.dataclass(frozen=True)
class Claim:
    """That one system is better than another in some measure.

    Attributes:
      source: The paper.
      text: What it says, in a few words.
      measure: A name of `MEASURES` that has a good direction.
      better: The system that is claimed to be better.
      worse: The other one.
    """

    source: str
    text: str
    measure: str
    better: str
    worse: str


def claims_table(
    found: measure_tables.Found, labels: Mapping[str, str], claims: Sequence[Claim]
) -> str:
    """Returns a table of claims, each with the difference here and whether that agrees.

    A claim holds, or the opposite does, where p < 0.05; otherwise the runs do not tell.

    Args:
      found: The measures of each seed of each system.
      labels: How the systems are called.
      claims: The claims; those about systems or measures that are missing are left out.
    """
    rows = []
    for claim in claims:
        pair = [found.get(name, ()) for name in (claim.worse, claim.better)]
        if not all(runs and all(claim.measure in run for run in runs) for runs in pair):
            continue
        result = seeds.compare(*([run[claim.measure] for run in runs] for runs in pair))
        rows.append([
            f"{claim.text} ({claim.source})",
            f"{MEASURES[claim.measure].label}: {labels[claim.better]} – {labels[claim.worse]}",
            f"{result.difference:+.2f}", tables.interval(result),
            tables.probability(result.p_value, seeds.RESAMPLES), verdict(claim, result),
        ])  # fmt: skip
    headings = ["claim", "difference of", "here", "95 % interval", "p", "verdict"]
    return tables.table(headings, rows)


def verdict(claim: Claim, result: seeds.Comparison) -> str:
    """Returns in a word whether a comparison agrees with a claim."""
    if result.p_value >= measure_tables.LIKELY:
        return "not shown"
    rises = result.difference > 0
    return "held" if rises == (MEASURES[claim.measure].is_better == "high") else "opposite"
