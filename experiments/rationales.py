"""Rationales: selected words against what people have marked; see `USAGE`.

The claims: Lei, Barzilay and Jaakkola 2016, section 5: a generator selects better than attention,
and a recurrent one better than an independent one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import page, pictures, program, sample_document, score_means
from experiments.kit.variants import Variant, by_cell, grid_of

NAME = "rationales"
TITLE = "Rationales of movie reviews"
USAGE = """
Compares generators of rationales (configs/lei2016.py) on the movie reviews of ERASER: independent
and recurrent ones with REINFORCE, each with and without a moving average as baseline, and HardKuma,
at three prices of a selected word; and the best words of attention (configs/yang2016.py). Accuracy,
the share of words that is selected, token F1, IOU F1 and precision against what people have marked.
Three seeds each; 48 runs, whose time is not measured.

usage: python -m experiments.rationales [--OPTION=VALUE ...]
"""
PRICES = (1e-4, 3e-4, 1e-3)
GENERATORS: dict[str, dict[str, Any]] = {
    "independent": {"model.generator.selector.name": "independent"},
    "independent_paper": {
        "model.generator.selector.name": "independent",
        "objectives.rationale.baseline": "none",
    },
    "recurrent": {"model.generator.selector.name": "recurrent"},
    "recurrent_paper": {
        "model.generator.selector.name": "recurrent",
        "objectives.rationale.baseline": "none",
    },
    "hard_kuma": {"model.generator.selector.name": "hard_kuma"},
}
ATTENTION = "attention"
SHOWN = (ATTENTION, *(f"{name}_{PRICES[1]:g}" for name in ("recurrent", "hard_kuma")))
COLUMNS = {
    "label_accuracy": "accuracy ↑", "selected_share": "words selected",
    "token_f1": "token F1 ↑", "iou_f1": "IOU F1 ↑", "token_precision": "precision ↑",
    "attention_token_f1": "token F1 of weights ↑", "attention_precision_10": "at 10 % ↑",
}  # fmt: skip


def systems(smoke: bool = False) -> dict[str, Variant]:
    """Returns attention, and each generator at each price."""
    found = {ATTENTION: Variant(ATTENTION, config="yang2016")}
    for price in PRICES[1:2] if smoke else PRICES:
        for name, fields in GENERATORS.items():
            label = f"{name.replace('_', ' ')} {price:g}"
            overrides = {**fields, "objectives.rationale.sparsity": price}
            found[f"{name}_{price:g}"] = Variant(label, overrides)
    return found


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or tiny ones on made-up data."""
    return grid_of(
        NAME, systems(smoke), "lei2016:eraser_movies", smoke,
        curves=("nll", "accuracy", "rationale/share"),
        after=("experiments.kit.sample_document",), kept={sample_document.FILE: None},
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page, and a document as the first seeds of attention and generators read it."""
    cells = by_cell(runs)
    firsts = {systems()[name].label: cells[name][0] for name in SHOWN if name in cells}
    picture = sample_document.write_picture(firsts, out / grid.name)
    written = page.write(
        grid, runs, out, TITLE, NAME, scores=score_means.overview(runs, systems(), COLUMNS),
        picture=pictures.shown(picture, out),
    )  # fmt: skip
    return [written, *picture]


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
