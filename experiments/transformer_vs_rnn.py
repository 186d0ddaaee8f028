"""The Transformer against a recurrent network; see `USAGE`.

The claim: Vaswani et al., "Attention is all you need", NIPS 2017, section 6.1.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attention_jax.plotting.curves import Curve
from attention_jax.plotting.system_curves import system_curves
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import (
    attention_record,
    measure_tables,
    page,
    page_texts,
    pictures,
    program,
    sentence_measures,
)
from experiments.kit.training_curves import mean_curve, seconds_computed, sentences_per_second
from experiments.kit.variants import Cells, Variant, by_cell, grid_of

NAME = "transformer_vs_rnn"
TITLE = "The Transformer against a recurrent network"
USAGE = """
Compares the Transformer (configs/vaswani2017.py) with RNNsearch (configs/bahdanau2015.py) on
Multi30k from English to German, each as its config has it: BLEU, chrF, AER where the runs were
measured beside gold links, parameters, and the time and speed of training; three seeds each. Six
runs.

usage: python -m experiments.transformer_vs_rnn [--OPTION=VALUE ...]
"""
SYSTEMS = {
    "recurrent": Variant("RNNsearch", config="bahdanau2015"),
    "transformer": Variant("Transformer", config="vaswani2017"),
}
LABELS = {name: system.label for name, system in SYSTEMS.items()}
MEASURES = ("bleu", "aer", "match")


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or tiny ones on made-up data."""
    return grid_of(
        NAME, SYSTEMS, ":multi30k", smoke, after=("experiments.kit.attention_record",),
        kept={sentence_measures.FILE: MEASURES},
        curves=("nll_per_sentence", "seconds/compute", "steps_per_second"),
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page and its plot.

    Args:
      grid: The experiment.
      runs: Its finished runs.
      out: Where to write.

    Returns:
      The paths written.
    """
    found = attention_record.by_cell(grid, runs)
    every = [run for of_cell in found.values() for run in of_cell]
    # AER and match are there only if the runs were measured beside gold links.
    measures = [name for name in MEASURES if all(name in run for run in every)]
    plot = out / grid.name / "curves.png"
    curves = {LABELS[cell]: _curve(members) for cell, members in by_cell(runs).items()}
    title, progress = "What is learnt as sentence pairs are read", "thousands of sentence pairs"
    label = "negative log-likelihood of a sentence, nats"
    pictures.save(system_curves({"": curves}, label, title, progress), plot)
    no_links = "AER is missing: the runs were not measured beside gold links."
    compared = [measure_tables.differences(found, LABELS, each) for each in measures]
    written = page.write(
        grid, runs, out, TITLE, NAME, data=runs[0].resolved()["data"]["name"],
        overview=measure_tables.overview(found, LABELS, measures), legend=measure_tables.LEGEND,
        costs=_costs(by_cell(runs)), missing="" if "aer" in measures else no_links,
        differences="\n\n".join(compared) if len(found) > 1 else "",
        caption=title, plot=plot.relative_to(out),
    )  # fmt: skip
    return [written, plot]


def _curve(runs: Sequence[GridRun]) -> Curve:
    """Returns the validation NLL of a sentence over thousands of sentence pairs read."""
    steps, values = mean_curve(runs, "nll_per_sentence", "validation")
    return steps * runs[0].resolved()["data"]["batch_size"] / 1000, values


# Of sentences, not tokens: the two systems split text into different subwords.
def _costs(found: Cells) -> str:
    rows = []
    for cell, members in found.items():
        facts = members[0].facts()
        rows.append([
            LABELS[cell], f"{np.mean([run.scores()['chrf'] for run in members]):.1f}",
            f"{facts['num_parameters']:,}", page_texts.length_of_training(members[0].resolved()),
            f"{np.mean([sentences_per_second(run) for run in members]):,.0f}",
            f"{np.mean([seconds_computed(run) for run in members]) / 60:.0f}",
        ])  # fmt: skip
    headings = ["system", "chrF ↑", "parameters", "training", "sentences/s ↑", "minutes ↓"]
    return tables.table(headings, rows)


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
