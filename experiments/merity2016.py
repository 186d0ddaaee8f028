"""A language model with a pointer to its own past and without; see `USAGE`.

The claim: Merity, Xiong, Bradbury and Socher (ICLR 2017), that a pointer sentinel lowers
perplexity, most of all that of rare words.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attention_jax.evaluation import seeds
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import differences, kept_counts, page, program, word_likelihoods
from experiments.kit.variants import Cells, Variant, by_cell, grid_of
from experiments.kit.word_likelihoods import GROUPS, Likelihoods

NAME = "merity2016"
TITLE = "Pointer sentinel: perplexity with and without"
USAGE = """
Compares one small LSTM with a pointer sentinel and without on the Penn Treebank, with three seeds
each: perplexity with its significance, of all words and by their frequency. The text has to be at
hand, see docs/own_text.md.

usage: python -m experiments.merity2016 [--OPTION=VALUE ...]
"""
BASE = "none"
SYSTEMS = {
    "pointer": Variant("pointer sentinel"),
    "no_loss": Variant(
        "without the pointer's own loss", {"objectives.pointer_loss.weight": 0.0}
    ),
    "none": Variant(
        "no pointer", {"model.readout.name": "softmax", "objectives.pointer_loss": False}
    ),
}


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    return grid_of(
        NAME, SYSTEMS, f"{NAME}:ptb", smoke, after=("experiments.kit.word_likelihoods",),
        kept=kept_counts.kept(word_likelihoods.FILE),
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page; returns its path."""
    found = by_cell(runs)
    scores, compared = _scores(found), _differences(found)
    return [page.write(grid, runs, out, TITLE, NAME, scores=scores, differences=compared)]


def _groups() -> Mapping[str, Callable[[GridRun], Likelihoods]]:
    """Returns what reads the likelihoods of all words, and of each group of them, by its name."""
    of_run = word_likelihoods.of_run
    groups = {name: functools.partial(of_run, group=index) for index, name in enumerate(GROUPS)}
    return {"all words": of_run, **groups}


def _scores(found: Cells) -> str:
    """Makes a row for each system, with a column for each group of words."""
    rows = [
        [SYSTEMS[name].label, *(
            tables.with_deviation(seeds.seed_mean([*map(of_run, runs)]))
            for of_run in _groups().values()
        )]
        for name, runs in found.items()
    ]  # fmt: skip
    return tables.table(["system", *_groups()], rows)


def _differences(found: Cells) -> str:
    """Makes a row for each group of words and each system but the base."""
    rows = [
        [group, *row]
        for group, of_run in _groups().items()
        for row in differences.rows_against(BASE, found, of_run, SYSTEMS)
    ]
    headings = ["words", "system", "perplexity, against no pointer", *differences.HEADINGS]
    return tables.table(headings, rows) if rows else ""


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
