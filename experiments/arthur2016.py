"""Translation lexicons: bias, interpolation and none, on small and larger texts; see `USAGE`.

The claim: Arthur, Neubig and Nakamura (EMNLP 2016), that a lexicon as a bias of the logits helps
with rare words and makes training faster.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.runs.files import write_text
from experiments.kit import program, rare_words, seeds, tables, templates
from experiments.kit.grid import SMOKE, Grid, Run
from experiments.kit.rare_words import RareWords
from experiments.kit.templates import section

NAME = "arthur2016"
TITLE = "Translation lexicons: bias, interpolation, none"
USAGE = """
Compares translation with a lexicon as bias, by interpolation and without, on Multi30k with 4,000
and 29,000 pairs and on Tatoeba, with three seeds each: BLEU, and recall of rare words.

usage: python -m experiments.arthur2016 [--OPTION=VALUE ...]
"""
BASE = "none"
SEEDS = (0, 1, 2)
SYSTEMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "none": ("no lexicon", {"model.readout.name": "softmax", "data.lexicon.method": "none"}),
    "bias": ("bias", {}),
    "linear": ("interpolation", {"model.readout.name": "lexicon_linear"}),
}
CORPORA: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "multi30k_4k": ("Multi30k, 4,000 pairs", "multi30k", {
        "data.max_train_examples": 4000, "training.num_epochs": 30.0,
        "training.evaluate_every_steps": 100,
    }),
    "multi30k": ("Multi30k, 29,000 pairs", "multi30k", {}),
    "tatoeba": ("Tatoeba", "tatoeba", {}),
}  # fmt: skip
Found = Mapping[str, Mapping[str, Sequence[Run]]]


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    corpora = {"smoke": ("smoke", "smoke", {})} if smoke else CORPORA
    pairs = [(corpus, system) for corpus in corpora for system in SYSTEMS]
    return Grid(
        name=f"{NAME}_smoke" if smoke else NAME,
        config={
            f"{corpus}.{system}": f"configs/{NAME}.py:{corpora[corpus][1]}"
            for corpus, system in pairs
        },
        overrides=SMOKE if smoke else {},
        cells={
            f"{corpus}.{system}": {**corpora[corpus][2], **SYSTEMS[system][1]}
            for corpus, system in pairs
        },
        seeds=(0,) if smoke else SEEDS,
        after=("experiments.kit.rare_words",),
        kept={rare_words.FILE: (rare_words.ARRAY,)},
    )


def write_report(grid: Grid, runs: Sequence[Run], out: Path) -> list[Path]:
    """Writes the page.

    Args:
      grid: The experiment.
      runs: Its finished runs.
      out: Where to write.

    Returns:
      The paths written.
    """
    found: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        corpus, _, system = run.cell.partition(".")
        found.setdefault(corpus, {}).setdefault(system, []).append(run)
    text = templates.fill(
        NAME, opening=section(tables.opening(TITLE, NAME, grid, runs)), scores=_scores(found),
        differences=_differences(found), reading=section(tables.reading(out / grid.name)),
        provenance=tables.provenance(runs),
    )  # fmt: skip
    page = out / f"{grid.name}.md"
    write_text(page, text + "\n")
    return [page]


def recall_of(runs: Sequence[Run]) -> list[RareWords]:
    """Returns the rare words that each run has found."""
    arrays = [run.arrays(rare_words.FILE)[rare_words.ARRAY] for run in runs]
    return [RareWords(counts.astype(np.float64)) for counts in arrays]


def _scores(found: Found) -> str:
    """Makes a row for each corpus and system."""
    rows = []
    for corpus, systems in found.items():
        label = CORPORA.get(corpus, (corpus,))[0]
        for system, runs in systems.items():
            results = [run.scores() for run in runs]
            rows.append([
                label, SYSTEMS[system][0], tables.spread([one.get("bleu") for one in results]),
                tables.with_deviation(seeds.seed_mean(recall_of(runs))),
                tables.spread([one.get("perplexity") for one in results]),
            ])  # fmt: skip
    headings = ["corpus", "lexicon", "BLEU", "recall of rare words (%)", "perplexity"]
    return tables.table(headings, rows)


def _differences(found: Found) -> str:
    """Compares the recall of each system with that of none, corpus by corpus."""
    rows = []
    for corpus, systems in found.items():
        if BASE not in systems:
            continue
        base = recall_of(systems[BASE])
        for system, runs in systems.items():
            if system != BASE:
                test = seeds.compare(base, recall_of(runs))
                rows.append([
                    CORPORA.get(corpus, (corpus,))[0], SYSTEMS[system][0],
                    f"{test.difference:+.2f}", tables.interval(test),
                    tables.probability(test.p_value, seeds.RESAMPLES),
                ])  # fmt: skip
    headings = ["corpus", "lexicon", "recall, against none", "95 % interval", "p"]
    return tables.table(headings, rows) if rows else ""


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
