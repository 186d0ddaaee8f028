"""What a pyramid saves and costs in listen, attend and spell; see `USAGE`."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.plotting.tradeoff import Point, tradeoff
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import (
    differences,
    page,
    pictures,
    program,
    resampled_scores,
    sample_attention,
)
from experiments.kit.templates import titled
from experiments.kit.variants import Cells, Variant, by_condition, crossed, grid_of

NAME = "pyramid"
TITLE = "A pyramid against none: strings of spoken digits"
USAGE = """
Compares encoders that halve the frames of sound none to three times, with as many parameters, under
content-based and location-aware attention, with three seeds each: errors on speakers that were
heard in training and on one who was not, times of words, speed and memory.
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
BASE, SHOWN = "none", "content"  # what is compared with, and the attention that is drawn
TESTS = {"test": "speakers of training", "new_speaker": "a new speaker"}
_TESTED = ("Two-sided paired bootstrap over recordings and seeds; with several tests some have "
           "p < 0.05 by chance.")  # fmt: skip
_MEMORY = ("memory/device_peak", "memory/host_peak")  # bytes; a run logs the one or the other
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
        curves=("steps_per_second", "wer", *_MEMORY), after=("experiments.kit.sample_attention",),
        kept={
            sample_attention.FILE: None,
            **resampled_scores.kept("wer", splits=["test"] if smoke else TESTS),
        },
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page, errors over speed, and attention under spectrograms; returns their paths."""
    found, folder = by_condition(runs), out / grid.name
    costs = _draw_costs(found, folder / "cost.png")
    firsts = {LABELS[name]: cells[SHOWN][0] for name, cells in found.items() if SHOWN in cells}
    drawn = sample_attention.write_pictures(firsts, folder)
    written = page.write(
        grid, runs, out, TITLE, NAME, systems=_table(found),
        differences=titled("Differences from no pyramid", _differences(found)),
        costs=titled("Error against speed", pictures.shown(costs, out)),
        pictures=titled(
            f"Attention under the spectrogram, {ATTENTION[SHOWN].label}", pictures.shown(drawn, out)
        ),
    )  # fmt: skip
    return [written, *costs, *drawn]


def _differences(found: Mapping[str, Cells]) -> str:
    """Makes a row for each test, attention and pyramid: its errors against those without one."""
    encoders, rows = {name: Variant(label) for name, label in LABELS.items()}, []
    for test, label in TESTS.items():
        of_run = resampled_scores.of_run("wer", test)
        for how in ATTENTION:
            cells = {name: under[how] for name, under in found.items() if how in under}
            kept = resampled_scores.keeping(cells, "wer", test)
            tested = differences.rows_against(BASE, kept, of_run, encoders)
            rows += [[label, how, *row] for row in tested]
    headings = ["test", "attention", "encoder", "WER, against none", *differences.HEADINGS]
    return f"{tables.table(headings, rows)}\n\n{_TESTED}" if rows else ""


def _draw_costs(found: Mapping[str, Cells], path: Path) -> list[Path]:
    """Draws error over speed, of systems that have both; returns the file written, if any."""
    points = {}
    for name, of_encoder in found.items():
        for how, runs in of_encoder.items():
            speeds = _known(steps_per_second, runs)
            errors = _known(lambda run: run.scores().get("wer"), runs)
            if speeds and errors:
                x, y = (float(np.mean(values)) for values in (speeds, errors))
                spreads = map(_deviation, (speeds, errors))
                points[f"{LABELS[name]}, {how}"] = Point(x, y, *spreads, how)
    if not points:
        return []
    pictures.save(tradeoff(points, "steps a second", "WER (%)"), path)
    return [path]


def _known(measure: Callable[[GridRun], float | None], runs: Sequence[GridRun]) -> list[float]:
    return [value for value in map(measure, runs) if value is not None]


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _table(found: Mapping[str, Cells]) -> str:
    """Makes a row for each system."""
    rows = [
        [
            LABELS[name], how, _spread(runs, "test", "wer"), _spread(runs, "new_speaker", "wer"),
            _spread(runs, "test", "word_start_error"),
            tables.spread([steps_per_second(run) for run in runs]),
            _slowdown(runs, found.get(BASE, {}).get(how, ())),
            tables.spread([peak_memory(run) for run in runs], digits=0),
            f"{runs[0].facts().get('num_parameters', 0):,}",
        ]
        for name, of_encoder in found.items()
        for how, runs in of_encoder.items()
    ]  # fmt: skip
    headings = ["encoder", "attention", "WER (%)", "WER of a new speaker (%)",
                "error of word starts (ms)", "steps a second",
                "time of a step, none = 1", "memory (MiB)", "parameters"]  # fmt: skip
    return tables.table(headings, rows)


def _spread(runs: Sequence[GridRun], split: str, metric: str) -> str:
    return tables.spread([run.results().get(split, {}).get(metric) for run in runs])


def _slowdown(runs: Sequence[GridRun], base: Sequence[GridRun]) -> str:
    """Formats how many times as long a step takes as without a pyramid, of runs that both tell."""
    reference = _known(steps_per_second, base)
    speeds = _known(steps_per_second, runs) if reference else []
    return tables.spread([float(np.mean(reference)) / speed for speed in speeds])


def steps_per_second(run: GridRun) -> float | None:
    """Returns the median speed of a training, which compiling its shapes does not change."""
    _, values = run.record().curves.get("steps_per_second", {}).get("train", ((), ()))
    return statistics.median(values) if values else None


def peak_memory(run: GridRun) -> float | None:
    """Returns the peak of a training's memory in MiB: of the device, or of the process on CPUs."""
    for name in _MEMORY:
        _, values = run.record().curves.get(name, {}).get("train", ((), ()))
        if values:
            return max(values) / 2**20
    return None


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
