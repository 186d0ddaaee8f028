"""Differences of systems from a base, tested over sentences and seeds, as rows of tables."""

from collections.abc import Callable, Mapping, Sequence

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
