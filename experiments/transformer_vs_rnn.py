"""The Transformer against a recurrent network; see `USAGE`.

The claim: Vaswani et al., "Attention is all you need", NIPS 2017, section 6.1.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attention_jax.plotting.curves import Curve
from attention_jax.plotting.figure import save_figure
from attention_jax.plotting.system_curves import system_curves
from attention_jax.runs.files import write_text
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, Run
from experiments.kit import (
    attention_record,
    measure_tables,
    page_texts,
    program,
    sentence_measures,
    templates,
)
from experiments.kit.templates import section
from experiments.kit.training_curves import mean_curve, seconds_computed, sentences_per_second
from experiments.kit.variants import SMOKE

NAME = "transformer_vs_rnn"
TITLE = "The Transformer against a recurrent network"
USAGE = """
Compares the Transformer (configs/vaswani2017.py) with RNNsearch (configs/bahdanau2015.py) on
Multi30k from English to German, each as its config has it: BLEU, chrF, AER where the runs were
measured beside gold links, parameters, and the time and speed of training; three seeds each. Six
runs.

usage: python -m experiments.transformer_vs_rnn [--OPTION=VALUE ...]
"""
CONFIGS = {"recurrent": "bahdanau2015", "transformer": "vaswani2017"}
LABELS = {"recurrent": "RNNsearch", "transformer": "Transformer"}
MEASURES = ("bleu", "aer", "match")


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or tiny ones on made-up data."""
    argument = "smoke" if smoke else "multi30k"
    return Grid(
        name=f"{NAME}_smoke" if smoke else NAME,
        config={cell: f"configs/{config}.py:{argument}" for cell, config in CONFIGS.items()},
        overrides=SMOKE if smoke else {},
        cells={cell: {} for cell in CONFIGS},
        seeds=(0,) if smoke else (0, 1, 2),
        after=("experiments.kit.attention_record",),
        kept={sentence_measures.FILE: MEASURES},
        curves=("nll_per_sentence", "seconds/compute", "steps_per_second"),
    )


def write_report(grid: Grid, runs: Sequence[Run], out: Path) -> list[Path]:
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
    page, plot = out / f"{grid.name}.md", out / grid.name / "curves.png"
    curves = {LABELS[cell]: _curve([run for run in runs if run.cell == cell]) for cell in found}
    title, progress = "What is learnt as sentence pairs are read", "thousands of sentence pairs"
    label = "negative log-likelihood of a sentence, nats"
    save_figure(system_curves({"": curves}, label, title, progress), plot)
    no_links = "AER is missing: the runs were not measured beside gold links."
    compared = [measure_tables.differences(found, LABELS, each) for each in measures]
    text = templates.fill(
        NAME, opening=section(page_texts.opening(TITLE, NAME, grid, runs)),
        data=runs[0].resolved()["data"]["name"],
        overview=measure_tables.overview(found, LABELS, measures), legend=measure_tables.LEGEND,
        costs=_costs(found, runs), missing="" if "aer" in measures else no_links,
        differences="\n\n".join(compared) if len(found) > 1 else "",
        title=title, plot=plot.relative_to(out), reading=section(page_texts.reading(plot.parent)),
        provenance=tables.provenance(runs),
    )  # fmt: skip
    write_text(page, text + "\n")
    return [page, plot]


def _curve(runs: Sequence[Run]) -> Curve:
    """Returns the validation NLL of a sentence over thousands of sentence pairs read."""
    steps, values = mean_curve(runs, "nll_per_sentence", "validation")
    return steps * runs[0].resolved()["data"]["batch_size"] / 1000, values


# Of sentences, not tokens: the two systems split text into different subwords.
def _costs(found: measure_tables.Found, runs: Sequence[Run]) -> str:
    rows = []
    for cell in found:
        members = [run for run in runs if run.cell == cell]
        facts = members[0].facts()
        rows.append([
            LABELS[cell], f"{np.mean([run.scores()['chrf'] for run in members]):.1f}",
            f"{facts['num_parameters']:,}", _updates(members[0]),
            f"{np.mean([sentences_per_second(run) for run in members]):,.0f}",
            f"{np.mean([seconds_computed(run) for run in members]) / 60:.0f}",
        ])  # fmt: skip
    headings = ["system", "chrF ↑", "parameters", "training", "sentences/s ↑", "minutes ↓"]
    return tables.table(headings, rows)


def _updates(run: Run) -> str:
    config = run.resolved()
    training, size = config["training"], config["data"]["batch_size"]
    if training["num_epochs"]:
        return f"{training['num_epochs']:g} passes in batches of {size}"
    return f"{training['num_steps']:,} updates of {size}"


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
