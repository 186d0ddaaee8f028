"""A page of scores: the mean and deviation over seeds of what each cell of a grid reaches."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from attention_jax.runs.files import write_text
from experiments.kit import tables
from experiments.kit.grid import Grid, Run
from experiments.kit.templates import section


def write_page(
    grid: Grid,
    runs: Sequence[Run],
    out: Path,
    title: str,
    experiment: str,
    labels: Mapping[str, str],
    columns: Mapping[str, str],
) -> Path:
    """Writes the page of an experiment.

    Args:
      grid: Its grid.
      runs: Its finished runs.
      out: Where to write.
      title: The page's title.
      experiment: The module in `experiments`.
      labels: Names of the cells.
      columns: Headings of the table by the names of scores of the test split. Runs that lack a
        score are left out of its mean.
    """
    page = out / f"{grid.name}.md"
    text = [
        section(tables.opening(title, experiment, grid, runs)),
        overview(runs, labels, columns),
        "Means over seeds, with the standard deviation between them; of the test split, in per "
        "cent.",
        section(tables.reading(out / grid.name)),
        "## How it was made",
        tables.provenance(runs),
    ]
    write_text(page, "\n\n".join(filter(None, text)) + "\n")
    return page


def overview(
    runs: Sequence[Run], labels: Mapping[str, str], columns: Mapping[str, str]
) -> str:
    """Makes a table with a row for each cell that has runs, and a column for each score."""
    rows = []
    for cell, label in labels.items():
        of_cell = [run.scores() for run in runs if run.cell == cell]
        if of_cell:
            means = [tables.spread([scores.get(name) for scores in of_cell]) for name in columns]
            rows.append([label, str(len(of_cell)), *means])
    return tables.table(["system", "seeds", *columns.values()], rows)
