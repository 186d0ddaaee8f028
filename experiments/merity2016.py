"""A language model with a pointer to its own past and without; see `USAGE`.

The claim: Merity, Xiong, Bradbury and Socher (ICLR 2017), that a pointer sentinel lowers
perplexity, most of all that of rare words.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.runs.files import write_text
from experiments.kit import program, seeds, tables, templates, word_likelihoods
from experiments.kit.grid import SMOKE, Grid, Run
from experiments.kit.templates import section
from experiments.kit.word_likelihoods import GROUPS, Likelihoods

NAME = "merity2016"
TITLE = "Pointer sentinel: perplexity with and without"
USAGE = """
Compares one small LSTM with a pointer sentinel and without on the Penn Treebank, with three seeds
each: perplexity, of all words and by their frequency. The text has to be at hand, see
docs/own_text.md.

usage: python -m experiments.merity2016 [--OPTION=VALUE ...]
"""
BASE = "none"
SEEDS = (0, 1, 2)
SYSTEMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "pointer": ("pointer sentinel", {}),
    "no_loss": ("without the pointer's own loss", {"objectives.pointer_loss.weight": 0.0}),
    "none": ("no pointer", {
        "model.readout.name": "softmax", "objectives.pointer_loss": False,
    }),
}  # fmt: skip


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    return Grid(
        name=f"{NAME}_smoke" if smoke else NAME,
        config=f"configs/{NAME}.py:" + ("smoke" if smoke else "ptb"),
        overrides=SMOKE if smoke else {},
        cells={name: overrides for name, (_, overrides) in SYSTEMS.items()},
        seeds=(0,) if smoke else SEEDS,
        after=("experiments.kit.word_likelihoods",),
        kept={word_likelihoods.FILE: (word_likelihoods.ARRAY,)},
    )


def write_report(grid: Grid, runs: Sequence[Run], out: Path) -> list[Path]:
    """Writes the page.

    Args:
      grid: The experiment.
      runs: Its finished runs.
      out: Where to write.

    Returns:
      The paths written.
    """
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.cell, []).append(run)
    text = templates.fill(
        NAME, opening=section(tables.opening(TITLE, NAME, grid, runs)), scores=_scores(found),
        differences=_differences(found), reading=section(tables.reading(out / grid.name)),
        provenance=tables.provenance(runs),
    )  # fmt: skip
    page = out / f"{grid.name}.md"
    write_text(page, text + "\n")
    return [page]


def likelihoods_of(runs: Sequence[Run], group: int | None = None) -> list[Likelihoods]:
    """Returns what each run makes of all words, or of those of a group."""
    arrays = [run.arrays(word_likelihoods.FILE)[word_likelihoods.ARRAY] for run in runs]
    whole = [counts.astype(np.float64) for counts in arrays]
    chosen = [counts.sum(axis=1) if group is None else counts[:, group] for counts in whole]
    return [Likelihoods(counts) for counts in chosen]


def _scores(found: Mapping[str, Sequence[Run]]) -> str:
    """Makes a row for each system, with a column for each group of words."""
    rows = [
        [
            SYSTEMS[name][0],
            *(
                tables.with_deviation(seeds.seed_mean(likelihoods_of(runs, group)))
                for group in (None, *range(len(GROUPS)))
            ),
        ]
        for name, runs in found.items()
    ]
    return tables.table(["system", "all words", *GROUPS], rows)


def _differences(found: Mapping[str, Sequence[Run]]) -> str:
    """Compares the perplexity of each system with that of none."""
    if BASE not in found:
        return ""
    base, rows = likelihoods_of(found[BASE]), []
    for name, runs in found.items():
        if name != BASE:
            test = seeds.compare(base, likelihoods_of(runs))
            rows.append([
                SYSTEMS[name][0], f"{test.difference:+.2f}", tables.interval(test),
                tables.probability(test.p_value, seeds.RESAMPLES),
            ])  # fmt: skip
    headings = ["system", "perplexity, against no pointer", "95 % interval", "p"]
    return tables.table(headings, rows) if rows else ""


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
