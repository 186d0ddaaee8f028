"""What a pyramid saves and costs in listen, attend and spell; see `USAGE`."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import page, program
from experiments.kit.variants import Cells, Variant, by_condition, crossed, grid_of

NAME = "pyramid"
TITLE = "A pyramid against none: strings of spoken digits"
USAGE = """
Compares encoders that halve the frames of sound none to three times, with as many parameters, under
content-based and location-aware attention, with three seeds each: errors on speakers that were
heard in training and on one who was not, times of words, and speed.
The claim: Chan et al. (2016, section 3.1), that without a pyramid attention has too many frames to
find the relevant ones in, and learns far more slowly.

usage: python -m experiments.pyramid [--OPTION=VALUE ...]
"""
LAYERS = 4  # without a pyramid, as many as the highest one has
_ENCODER = "model.sources.source.encoder"
LABELS = {
    "none": "no pyramid", "levels_1": "1 level", "levels_2": "2 levels", "levels_3": "3 levels",
}  # fmt: skip
ATTENTION = {
    "content": Variant("content", {"model.attention.name": "luong_general"}),
    "location": Variant("location", {
        "model.attention.name": "location_aware", "model.attention.attention_dim": 128,
    }),
}  # fmt: skip
# Of each direction of a layer, such that all encoders have as many parameters to 2 %.
_DEPTHS = {"none": 121, "levels_1": 155, "levels_2": 115, "levels_3": 96}


def encoder(name: str, smoke: bool = False) -> Mapping[str, Any]:
    """Returns the overrides of an encoder."""
    depth = 8 if smoke else _DEPTHS[name]
    if name == "none":
        return {
            f"{_ENCODER}.name": "recurrent", f"{_ENCODER}.cell": "lstm",
            f"{_ENCODER}.num_layers": LAYERS, f"{_ENCODER}.hidden_dim": depth,
        }  # fmt: skip
    levels = int(name.rpartition("_")[2])
    return {f"{_ENCODER}.levels": levels, f"{_ENCODER}.hidden_dim": depth}


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    encoders = {name: Variant(label, encoder(name, smoke)) for name, label in LABELS.items()}
    return grid_of(
        NAME, crossed(encoders, ATTENTION), "chan2016:digits", smoke,
        curves=("steps_per_second", "wer"),
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page; returns its path."""
    return [page.write(grid, runs, out, TITLE, NAME, systems=_table(by_condition(runs)))]


def _table(found: Mapping[str, Cells]) -> str:
    """Makes a row for each system."""
    rows = [
        [
            LABELS[name], how, _spread(runs, "test", "wer"), _spread(runs, "new_speaker", "wer"),
            _spread(runs, "test", "word_start_error"),
            tables.spread([steps_per_second(run) for run in runs]),
            f"{runs[0].facts().get('num_parameters', 0):,}",
        ]
        for name, of_encoder in found.items()
        for how, runs in of_encoder.items()
    ]  # fmt: skip
    headings = ["encoder", "attention", "WER (%)", "WER of a new speaker (%)",
                "error of word starts (ms)", "steps a second", "parameters"]  # fmt: skip
    return tables.table(headings, rows)


def _spread(runs: Sequence[GridRun], split: str, metric: str) -> str:
    return tables.spread([run.results().get(split, {}).get(metric) for run in runs])


def steps_per_second(run: GridRun) -> float | None:
    """Returns the median speed of a training, which compiling its shapes does not change."""
    _, values = run.record().curves.get("steps_per_second", {}).get("train", ((), ()))
    return statistics.median(values) if values else None


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
