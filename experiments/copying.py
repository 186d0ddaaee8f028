"""Copying words that no vocabulary has, in code from descriptions; see `USAGE`.

The claims: Gu, Lu, Li and Li (ACL 2016) and See, Liu and Manning (ACL 2017), that a model which may
copy words of its source writes those that it does not know, and so writes better; Luong et al.
(ACL 2015), that unknown words may be replaced afterwards, by attention.
"""

from collections.abc import Sequence
from pathlib import Path

from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import differences, kept_counts, page, program, program_outcomes, score_means
from experiments.kit.templates import titled
from experiments.kit.variants import MADE_UP, Cells, Variant, by_condition, crossed, grid_of

NAME = "copying"
TITLE = "Copying: names that no vocabulary has, in code"
USAGE = """
Compares models that copy with those that replace unknown words, leave them or write subwords, on
code from descriptions (Django and Hearthstone), with three seeds each.

usage: python -m experiments.copying [--OPTION=VALUE ...]
"""
BASE = "replaced"
DATA = {
    "django": Variant("Django", argument="django"),
    "hearthstone": Variant("Hearthstone", argument="hearthstone"),
}
_WITHOUT_COVERAGE = {"model.attention.name": "bahdanau", "objectives.coverage_loss": False}
_GENERATING = {**_WITHOUT_COVERAGE, "model.readout.name": "softmax"}

SYSTEMS = {
    "words": Variant("words, unknown left", {**_GENERATING, "search.forbid_unknown": False}),
    "replaced": Variant("words, unknown replaced", {
        **_GENERATING, "search.forbid_unknown": False, "search.replace_unknown": True,
    }),
    "copynet": Variant("CopyNet", {}, config="gu2016"),
    "pointer_generator": Variant("pointer-generator", _WITHOUT_COVERAGE),
    "coverage": Variant("pointer-generator, coverage", {}),
    "subwords": Variant("subwords", {
        **_GENERATING, "search.forbid_unknown": False, "data.subwords.kind": "bpe",
        "data.subwords.size": 4000,
    }),
}  # fmt: skip


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    cells = crossed(MADE_UP if smoke else DATA, SYSTEMS)
    if smoke:  # whose code has too few characters for more subwords
        subwords = {**SYSTEMS["subwords"].overrides, "data.subwords.size": 60}
        cells["smoke.subwords"] = Variant("subwords", subwords)
    return grid_of(
        NAME, cells, "see2017", smoke, after=("experiments.kit.program_outcomes",),
        kept=kept_counts.kept(program_outcomes.FILE),
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page; returns its path."""
    found = by_condition(runs)
    compared = differences.table_against(
        BASE, found, program_outcomes.of_run, SYSTEMS,
        {name: data.label for name, data in DATA.items()},
        ("data", "system", "exact match, against replacement"),
    )  # fmt: skip
    scores = {
        name: titled(data.label, _table(found.get(name, {}))) for name, data in DATA.items()
    }
    return [page.write(grid, runs, out, TITLE, NAME, **scores, differences=compared)]


def _table(systems: Cells) -> str:
    """Makes a row for each system of a data set."""
    rows = []
    for name, runs in systems.items():
        recalls = [program_outcomes.of_run(run).rare_word_recall for run in runs]
        parameters = [run.facts()["num_parameters"] for run in runs]
        rows.append([
            SYSTEMS[name].label, *score_means.means(runs, ("exact_match", "bleu")),
            tables.spread(recalls), f"{max(parameters):,}",
        ])  # fmt: skip
    headings = ["system", "exact match", "BLEU", "recall of rare words", "parameters"]
    return tables.table(headings, rows) if rows else ""


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
