"""Names of functions: attention, convolutional attention, and with copying; see `USAGE`.

The claim: Allamanis, Peng and Sutton (ICML 2016), that convolutional attention names functions
better than attention to tokens by themselves, and best where it also copies.
"""

from collections.abc import Sequence
from pathlib import Path

from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import differences, page, program, resampled_scores, score_means
from experiments.kit.variants import Cells, Variant, by_cell, grid_of

NAME = "allamanis2016"
TITLE = "Names of functions: convolutional attention and copying"
USAGE = """
Compares attention, convolutional attention and convolutional copy attention on names of functions
of Python's standard library, with three seeds each: F1 of sub-tokens and exact match, with their
significance, of the best name and of the best among five.

usage: python -m experiments.allamanis2016 [--OPTION=VALUE ...]
"""
BASE = "attention"
SYSTEMS = {
    "attention": Variant("attention", {
        "model.attention.name": "bahdanau", "model.attention.attention_dim": 128,
    }),
    "convolutional": Variant("convolutional attention"),
    "copying": Variant(
        "convolutional copy attention", {"model.readout.name": "convolutional_copy"}
    ),
}  # fmt: skip
COLUMNS = {
    "f1": "F1, rank 1", "f1_rank_5": "F1, rank 5", "exact_match": "exact match, rank 1",
    "exact_match_rank_5": "exact match, rank 5",
}  # fmt: skip


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    # A greedy search, as in all tiny grids, finds one name; made-up code can be copied.
    tiny = {"search.num_hypotheses": 1, "data.name": "smoke_code"}
    return grid_of(
        NAME, SYSTEMS, f"{NAME}:method_naming", smoke, overrides=tiny if smoke else {},
        kept=resampled_scores.kept(),
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page; returns its path."""
    cells = by_cell(runs)
    compared = filter(None, (_differences(cells, metric) for metric in COLUMNS))
    return [page.write(
        grid, runs, out, TITLE, NAME, scores=score_means.overview(runs, SYSTEMS, COLUMNS),
        differences="\n\n".join(compared),
    )]  # fmt: skip


def _differences(cells: Cells, metric: str) -> str:
    """Makes a row for each system but the base; none of runs without the metric, as tiny ones."""
    return differences.table_of_systems(
        BASE, resampled_scores.keeping(cells, metric), resampled_scores.of_run(metric), SYSTEMS,
        f"{COLUMNS[metric]}, against attention",
    )  # fmt: skip


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
