"""Translation lexicons: bias, interpolation and none, on small and larger texts; see `USAGE`.

The claim: Arthur, Neubig and Nakamura (EMNLP 2016), that a lexicon as a bias of the logits helps
with rare words and makes training faster.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from attention_jax.evaluation import seeds
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import (
    differences,
    kept_counts,
    page,
    pictures,
    program,
    rare_words,
    resampled_scores,
    score_means,
    training_curves,
)
from experiments.kit.templates import titled
from experiments.kit.variants import (
    MADE_UP,
    Cells,
    Variant,
    by_condition,
    crossed,
    grid_of,
    label_of,
)

NAME = "arthur2016"
TITLE = "Translation lexicons: bias, interpolation, none"
USAGE = """
Compares translation with a lexicon as bias, by interpolation and without, on Multi30k with 4,000
and 29,000 pairs and on Tatoeba, with three seeds each: BLEU, recall of rare words, and perplexity
of the validation text over the updates.

usage: python -m experiments.arthur2016 [--OPTION=VALUE ...]
"""
BASE = "none"
_LOSS = "perplexity"
SYSTEMS = {
    "none": Variant(
        "no lexicon", {"model.readout.name": "softmax", "data.lexicon.method": "none"}
    ),
    "bias": Variant("bias"),
    "linear": Variant("interpolation", {"model.readout.name": "lexicon_linear"}),
}
CORPORA = {
    "multi30k_4k": Variant("Multi30k, 4,000 pairs", {
        "data.max_train_examples": 4000, "training.num_epochs": 30.0,
        "training.evaluate_every_steps": 100,
    }),
    "multi30k": Variant("Multi30k, 29,000 pairs"),
    "tatoeba": Variant("Tatoeba", argument="tatoeba"),
}  # fmt: skip


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    return grid_of(
        NAME, crossed(MADE_UP if smoke else CORPORA, SYSTEMS), f"{NAME}:multi30k", smoke,
        after=("experiments.kit.rare_words",), curves=(_LOSS,),
        kept={**kept_counts.kept(rare_words.FILE), **resampled_scores.kept("bleu")},
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page and its plots; returns their paths."""
    found = by_condition(runs)
    labels = {name: corpus.label for name, corpus in CORPORA.items()}
    compared = differences.table_against(
        BASE, found, rare_words.of_run, SYSTEMS, labels,
        ("corpus", "lexicon", "recall, against none"),
    )  # fmt: skip
    bleu = differences.table_against(
        BASE,
        {name: resampled_scores.keeping(cells, "bleu") for name, cells in found.items()},
        resampled_scores.of_run("bleu"), SYSTEMS, labels,
        ("corpus", "lexicon", "BLEU, against none"),
    )  # fmt: skip
    drawn = _curves(found, out / grid.name)
    shown = [f"{table}\n\n{pictures.shown([plot], out)}" for plot, table in drawn.items()]
    legend = [training_curves.LEGEND] if shown else []
    written = page.write(
        grid, runs, out, TITLE, NAME, scores=_scores(found), differences=compared, bleu=bleu,
        curves=titled("Validation perplexity over the updates", "\n\n".join([*legend, *shown])),
    )  # fmt: skip
    return [written, *drawn]


def _curves(found: Mapping[str, Cells], folder: Path) -> dict[Path, str]:
    """Draws the curves of each corpus; returns its plot with the table of the same curves."""
    drawn = {}
    for corpus, systems in found.items():
        named = {label_of(SYSTEMS, system): runs for system, runs in systems.items()}
        curves = training_curves.curves_of_seeds(named, _LOSS, "validation")
        if curves:
            label, plot = label_of(CORPORA, corpus), folder / f"{corpus}_curves.png"
            figure = training_curves.spread_curves(curves, "validation perplexity", label)
            pictures.save(figure, plot)
            drawn[plot] = training_curves.table_of_curves(curves, label, SYSTEMS[BASE].label)
    return drawn


def _scores(found: Mapping[str, Cells]) -> str:
    """Makes a row for each corpus and system."""
    rows = []
    for corpus, systems in found.items():
        for system, runs in systems.items():
            bleu, perplexity = score_means.means(runs, ("bleu", "perplexity"))
            recall = seeds.seed_mean([rare_words.of_run(run) for run in runs])
            rows.append([
                label_of(CORPORA, corpus), label_of(SYSTEMS, system), bleu,
                tables.with_deviation(recall), perplexity,
            ])  # fmt: skip
    headings = ["corpus", "lexicon", "BLEU", "recall of rare words (%)", "perplexity"]
    return tables.table(headings, rows)


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
