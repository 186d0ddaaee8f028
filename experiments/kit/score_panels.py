"""Scores of a grid's systems, arranged as panels of a dot plot."""

from collections.abc import Mapping, Sequence

import numpy as np

from attention_jax.evaluation import seeds
from attention_jax.plotting.score_dots import Score, Series
from attention_jax.sweeps.grid import GridRun
from experiments.kit.measure_tables import Found, heading

# The cells of each series, by the label of their line.
Layout = Mapping[str, Mapping[str, str]]


def score_panels(
    layout: Layout, found: Found, runs: Sequence[GridRun], measures: Sequence[str]
) -> dict[str, Series]:
    """Arranges perplexity and the given measures of all cells in panels.

    Args:
      layout: The lines and the series to draw.
      found: The measures of each cell's runs.
      runs: The runs, of which the perplexity is read.
      measures: Of `sentence_measures.MEASURES`.

    Returns:
      Panels for `attention_jax.plotting.score_dots.score_dots`.
    """
    panels = {"perplexity ↓": _series(layout, {cell: _perplexity(runs, cell) for cell in found})}
    for measure in measures:
        scores = {
            cell: _score(seeds.seed_mean([run[measure] for run in of_cell]))
            for cell, of_cell in found.items()
            if all(measure in run for run in of_cell)
        }
        panels[heading(measure)] = _series(layout, scores)
    return {measure: series for measure, series in panels.items() if any(series.values())}


def _series(layout: Layout, scores: Mapping[str, Score]) -> Series:
    return {
        label: {name: scores[cell] for name, cell in cells.items() if cell in scores}
        for label, cells in layout.items()
    }


def _perplexity(runs: Sequence[GridRun], cell: str) -> Score:
    values = [run.scores()["perplexity"] for run in runs if run.cell == cell]
    return Score(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0)


def _score(values: seeds.SeedMean) -> Score:
    return Score(values.mean, 0.0 if np.isnan(values.deviation) else values.deviation)
