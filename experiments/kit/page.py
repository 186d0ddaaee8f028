"""The page of an experiment: its template, filled in with what every page says of its runs."""

from collections.abc import Sequence
from pathlib import Path

from attention_jax.runs.files import write_text
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import page_texts, templates
from experiments.kit.templates import section


def write(
    grid: Grid, runs: Sequence[GridRun], out: Path, title: str, name: str, template: str = "",
    **values: object,
) -> Path:  # fmt: skip
    """Writes the page; opening, reading and provenance are made of the runs.

    Args:
      grid: The experiment's grid.
      runs: Its finished runs.
      out: Where to write, `GRID.md`.
      title: The page's title.
      name: The module in `experiments`.
      template: Name of the template, where it is not the module's.
      values: What stands in its other places.

    Returns:
      The path written.
    """
    page = out / f"{grid.name}.md"
    text = templates.fill(
        template or name, opening=section(page_texts.opening(title, name, grid, runs)),
        reading=section(page_texts.reading(out / grid.name)), provenance=tables.provenance(runs),
        **values,
    )  # fmt: skip
    write_text(page, text + "\n")
    return page
