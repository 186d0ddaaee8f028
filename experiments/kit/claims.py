"""Claims of papers, tested on the measurements here."""

import dataclasses
from collections.abc import Mapping, Sequence

from attention_jax.evaluation import seeds
from attention_jax.sweeps import tables
from experiments.kit import measure_tables
from experiments.kit.sentence_measures import MEASURES


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim that one system is better than another in some measure.

    Attributes:
      source: The paper.
      text: The claim in a few words.
      measure: A name of `MEASURES` that has a good direction.
      better: The system that is claimed to be better.
      worse: The other system.
    """

    source: str
    text: str
    measure: str
    better: str
    worse: str


def claims_table(
    found: measure_tables.Found, labels: Mapping[str, str], claims: Sequence[Claim]
) -> str:
    """Makes a table of claims, each with the difference measured here and a verdict.

    A claim, or its opposite, holds if p < 0.05; otherwise the runs do not show it.

    Args:
      found: The measures of each seed of each system.
      labels: Names of the systems in tables.
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
    """Judges a claim by a comparison: held, opposite or not shown."""
    if result.p_value >= measure_tables.LIKELY:
        return "not shown"
    # For measures that are better low, such as AER, a fall is what was claimed.
    rises = result.difference > 0
    return "held" if rises == (MEASURES[claim.measure].is_better == "high") else "opposite"
