"""Soft and hard attention on pictures: markup of formulas, and names of emoji; see `USAGE`.

The claim: Xu et al. (ICML 2015), table 1, that hard attention describes pictures as well as soft
attention does, or a little better.
"""

from collections.abc import Sequence
from pathlib import Path

from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import differences, kept_counts, page, program, score_means, word_outcomes
from experiments.kit.variants import Cells, Variant, by_condition, crossed, grid_of, label_of

NAME = "captions"
TITLE = "Pictures and their captions: soft and hard attention"
USAGE = """
Compares soft and hard attention, and the penalty of doubly stochastic attention, on rendered
formulas and on emoji, by their base and by picture, three seeds each. Twenty-seven runs.

usage: python -m experiments.captions [--OPTION=VALUE ...]
"""
BASE = "soft"
_SOFT = {
    "model.attention.score.name": "bahdanau", "objectives.reinforce": False,
    "objectives.attention_entropy": False,
}  # fmt: skip
SYSTEMS = {
    "soft": Variant("soft", _SOFT),
    "doubly_stochastic": Variant(
        "soft, doubly stochastic", {**_SOFT, "objectives.coverage_penalty.weight": 1.0}
    ),
    "hard": Variant("hard"),
}
DATA = {
    "formulas": Variant("formulas", argument="formulas"),
    "emoji_base": Variant("emoji, new bases", {"data.split_by": "base"}, argument="emoji"),
    "emoji_picture": Variant("emoji, new pictures", {"data.split_by": "picture"}, argument="emoji"),
}
# Formulas, which are made up in any case, but few and short ones.
TINY = {
    "formulas": Variant("formulas", {"data.num_formulas": 64, "data.max_symbols": 8},
                        argument="formulas"),
}  # fmt: skip
MEASURES = {
    "exact_match": "exact match", "exact_pictures": "exact picture", "bleu_1": "BLEU-1",
    "bleu_4": "BLEU-4", "chrf": "chrF", "attention_in_gold": "attention in gold rectangles",
}  # fmt: skip


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on few formulas."""
    return grid_of(
        NAME, crossed(TINY if smoke else DATA, SYSTEMS), "xu2015:formulas", smoke,
        after=("experiments.kit.word_outcomes",), kept=kept_counts.kept(word_outcomes.FILE),
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page; returns its path."""
    found = by_condition(runs)
    compared = differences.table_against(
        BASE, found, word_outcomes.of_run, SYSTEMS,
        {name: data.label for name, data in DATA.items()},
        ("data", "attention", "exact match, against soft"),
    )  # fmt: skip
    scores = {name: _table(found.get(name, {})) for name in DATA}
    return [page.write(grid, runs, out, TITLE, NAME, differences=compared, **scores)]


def _table(systems: Cells) -> str:
    """Makes a row for each system, with a column for each measure that any of them has."""
    shown = [
        name for name in MEASURES
        if any(name in run.scores() for runs in systems.values() for run in runs)
    ]  # fmt: skip
    rows = [
        [label_of(SYSTEMS, system), *score_means.means(runs, shown)]
        for system, runs in systems.items()
    ]
    return tables.table(["attention", *map(MEASURES.get, shown)], rows) if rows else ""


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
