"""Tables of scores: the mean and deviation over seeds of what each cell of a grid reaches."""

from collections.abc import Iterable, Mapping, Sequence

from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import GridRun
from experiments.kit.variants import Variant, by_cell, label_of


def overview(
    runs: Sequence[GridRun], systems: Mapping[str, Variant], columns: Mapping[str, str]
) -> str:
    """Makes a table with a row for each cell that has runs, and a column for each score."""
    rows = [
        [label_of(systems, cell), str(len(of_cell)), *means(of_cell, columns)]
        for cell, of_cell in by_cell(runs).items()
    ]
    return tables.table(["system", "seeds", *columns.values()], rows)


def means(runs: Sequence[GridRun], scores: Iterable[str]) -> list[str]:
    """Formats the mean and deviation of each score of the test split, over runs that have it."""
    results = [run.scores() for run in runs]
    return [tables.spread([one.get(score) for one in results]) for score in scores]
