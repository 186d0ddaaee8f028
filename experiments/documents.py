"""Attention, averages and maxima for document classification; see `USAGE`.

The claim: Yang et al. 2016, "Hierarchical attention networks for document classification",
section 3.4: attention is better than averages and maxima.
"""

from collections.abc import Sequence
from pathlib import Path

from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import (
    differences,
    page,
    pictures,
    program,
    resampled_scores,
    sample_document,
    score_means,
)
from experiments.kit.variants import Variant, by_cell, grid_of

NAME = "documents"
TITLE = "Attention against averages and maxima for documents"
USAGE = """
Compares attention with a learnt query, averages and maxima, as what makes a vector of the words of
a sentence and of the sentences of a document (configs/yang2016.py), on the movie reviews of ERASER:
accuracy, and how many of the words of the largest weights people have marked. Three seeds each;
nine runs.

usage: python -m experiments.documents [--OPTION=VALUE ...]
"""
BASE = "attention"
SYSTEMS = {
    name: Variant(name, {f"model.{level}.pooling.name": name for level in ("words", "sentences")})
    for name in ("attention", "average", "maximum")
}
COLUMNS = {
    "label_accuracy": "accuracy ↑", "macro_f1": "macro F1 ↑",
    "attention_token_f1": "token F1 of weights ↑", "attention_precision_10": "precision at 10 % ↑",
}  # fmt: skip


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or tiny ones on made-up data."""
    return grid_of(
        NAME, SYSTEMS, "yang2016:eraser_movies", smoke, curves=("nll", "accuracy"),
        after=("experiments.kit.sample_document",),
        kept={sample_document.FILE: None, **resampled_scores.kept("label_accuracy")},
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page, and a document as the first seed of attention weights it."""
    cells = by_cell(runs)
    firsts = {name: cells[name][0] for name in (BASE,) if name in cells}
    picture = sample_document.write_picture(firsts, out / grid.name)
    compared = differences.table_of_systems(
        BASE, cells, resampled_scores.of_run("label_accuracy"), SYSTEMS,
        "accuracy, against attention",
    )  # fmt: skip
    written = page.write(
        grid, runs, out, TITLE, NAME, scores=score_means.overview(runs, SYSTEMS, COLUMNS),
        differences=compared, picture=pictures.shown(picture, out),
    )  # fmt: skip
    return [written, *picture]


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
