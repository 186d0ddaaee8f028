"""Differences of systems from a base, tested over sentences and seeds, as rows of tables."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation import seeds
from attention_jax.evaluation.seeds import SentenceCounts
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import GridRun
from experiments.kit.variants import Cells, Variant, label_of

HEADINGS = ("95 % interval", "p")  # behind the difference


def rows_against(
    base: str, cells: Cells, of_run: Callable[[GridRun], SentenceCounts],
    systems: Mapping[str, Variant],
) -> list[list[str]]:  # fmt: skip
    """Makes a row for each system but the base; none where the base has no runs.

    Args:
      base: The system that the others are compared with.
      cells: The runs of each system, all of them on the same sentences.
      of_run: Returns what is counted of a run.
      systems: The systems, for their labels.
    """
    if base not in cells:
        return []
    first = [of_run(run) for run in cells[base]]
    tests = {
        name: seeds.compare(first, [of_run(run) for run in runs])
        for name, runs in cells.items()
        if name != base
    }
    return [[label_of(systems, name), *tables.tested(test)] for name, test in tests.items()]


def table_of_systems(
    base: str, cells: Cells, of_run: Callable[[GridRun], SentenceCounts],
    systems: Mapping[str, Variant], heading: str,
) -> str:  # fmt: skip
    """Makes a table of `rows_against` with the heading of its differences; none without rows."""
    rows = rows_against(base, cells, of_run, systems)
    return tables.table(["system", heading, *HEADINGS], rows) if rows else ""


def table_against(
    base: str, found: Mapping[str, Cells], of_run: Callable[[GridRun], SentenceCounts],
    systems: Mapping[str, Variant], labels: Mapping[str, str], headings: Sequence[str],
) -> str:  # fmt: skip
    """Makes a table of `rows_against` under every condition; none where there is no row.

    Args:
      base: The system that the others are compared with.
      found: The runs by condition and system.
      of_run: Returns what is counted of a run.
      systems: The systems, for their labels.
      labels: Names of the conditions; others are called as they are.
      headings: Of conditions, systems and differences.
    """
    rows = [
        [labels.get(condition, condition), *row]
        for condition, cells in found.items()
        for row in rows_against(base, cells, of_run, systems)
    ]
    return tables.table([*headings, *HEADINGS], rows) if rows else ""


@dataclasses.dataclass(frozen=True, eq=False)
class JoinedCounts:
    """One seed of a system under several conditions: their sentences one after the other.

    Attributes:
      counts: Of all sentences.
      scored: What is counted under one of the conditions, which says how sums are scored.
    """

    counts: Float[np.ndarray, "N F"]
    scored: SentenceCounts

    def score(self, sums: Float[np.ndarray, "*R F"]) -> Float[np.ndarray, "*R"]:
        """Computes the score from sums of counts."""
        return self.scored.score(sums)


def table_of_pools(
    base: str, pools: Mapping[str, Mapping[str, Cells]],
    of_run: Callable[[GridRun], SentenceCounts], systems: Mapping[str, Variant],
    headings: Sequence[str],
) -> str:  # fmt: skip
    """Makes a row for each pool and system but the base, tested over all conditions of the pool.

    A pool has a row of a system where two of its conditions or more have runs of it and of the
    base, of the same seeds; every sentence counts alike. None where there is no row.

    Args:
      base: The system that the others are compared with.
      pools: The runs by condition and system, for each name of a pool.
      of_run: Returns what is counted of a run.
      systems: The systems, for their labels.
      headings: Of pools, systems, numbers of conditions and differences.
    """
    rows = []
    for pool, found in pools.items():
        names = dict.fromkeys(name for cells in found.values() for name in cells if name != base)
        for name in names:
            both = [
                (cells[base], cells[name])
                for cells in found.values()
                if base in cells and name in cells
            ]
            if len(both) < 2:
                continue
            first, second = (_joined(side, of_run) for side in zip(*both, strict=True))
            if first and second:
                test = tables.tested(seeds.compare(first, second))
                rows.append([pool, label_of(systems, name), str(len(both)), *test])
    return tables.table([*headings, *HEADINGS], rows) if rows else ""


def _joined(
    conditions: Sequence[Sequence[GridRun]], of_run: Callable[[GridRun], SentenceCounts]
) -> list[JoinedCounts]:
    """Joins the runs of each seed that all conditions have."""
    by_seed = [{run.seed: run for run in runs} for runs in conditions]
    joined = []
    for seed in sorted(set.intersection(*map(set, by_seed))):
        parts = [of_run(runs[seed]) for runs in by_seed]
        joined.append(JoinedCounts(np.concatenate([part.counts for part in parts]), parts[0]))
    return joined
