"""Soft and hard attention on pictures: markup of formulas, and names of emoji; see `USAGE`.

The claim: Xu et al. (ICML 2015), table 1, that hard attention describes pictures as well as soft
attention does, or a little better.
"""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import (
    differences,
    gold_areas,
    kept_counts,
    page,
    pictures,
    program,
    resampled_scores,
    sample_attention,
    score_means,
    word_outcomes,
)
from experiments.kit.templates import titled
from experiments.kit.variants import (
    Cells,
    Variant,
    by_condition,
    crossed,
    grid_of,
    label_of,
)

NAME = "captions"
TITLE = "Pictures and their captions: soft and hard attention"
USAGE = """
Compares soft and hard attention, and the penalty of doubly stochastic attention, on rendered
formulas and on emoji, by their base and by picture, and on formulas also attention that is taught
where each symbol is, three seeds each. Thirty runs.

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
# Where data say which places are gold.
TAUGHT = {
    "supervised": Variant("soft, supervised", {
        **_SOFT, "objectives.supervised_alignment.weight": 0.3,
        "objectives.supervised_alignment.unaligned": "ignore",
    }),
}  # fmt: skip
_ALL = {**SYSTEMS, **TAUGHT}
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
_GOLD = "attention_in_gold"
_SHOWN = "emoji_base"  # beside formulas, of which every system is shown


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on few formulas."""
    data = TINY if smoke else DATA
    taught = crossed({name: data[name] for name in TINY}, TAUGHT)
    return grid_of(
        NAME, {**crossed(data, SYSTEMS), **taught}, "xu2015:formulas", smoke,
        after=(
            "experiments.kit.word_outcomes", "experiments.kit.gold_areas",
            "experiments.kit.sample_attention",
        ),
        kept={
            **kept_counts.kept(word_outcomes.FILE), **kept_counts.kept(gold_areas.FILE),
            sample_attention.FILE: None, **resampled_scores.kept(_GOLD),
        },
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page, and where each word of a caption has looked; returns their paths."""
    found, labels = by_condition(runs), {name: data.label for name, data in DATA.items()}
    compared = differences.table_against(
        BASE, found, word_outcomes.of_run, _ALL, labels,
        ("data", "attention", "exact match, against soft"),
    )  # fmt: skip
    in_gold = differences.table_against(
        BASE,
        {name: resampled_scores.keeping(cells, _GOLD) for name, cells in found.items()},
        resampled_scores.of_run(_GOLD), _ALL, labels,
        ("data", "attention", "attention in gold rectangles, against soft"),
    )  # fmt: skip
    drawn = sample_attention.write_pictures(_shown(found), out / grid.name)
    scores = {name: _table(found.get(name, {})) for name in DATA}
    written = page.write(
        grid, runs, out, TITLE, NAME, differences=compared, in_gold=in_gold, **scores,
        pictures=titled("Where each word looked", pictures.shown(drawn, out)),
    )  # fmt: skip
    return [written, *drawn]


def _shown(found: Mapping[str, Cells]) -> dict[str, GridRun]:
    """Returns the first run of each system on formulas, and of the base on emoji, by titles."""
    cells = {("formulas", system): runs for system, runs in found.get("formulas", {}).items()}
    cells[_SHOWN, BASE] = found.get(_SHOWN, {}).get(BASE, ())
    return {
        f"{DATA[data].label}, {label_of(_ALL, system)}": runs[0]
        for (data, system), runs in cells.items()
        if runs
    }


def _table(systems: Cells) -> str:
    """Makes a row for each system; columns of which none has anything are left out."""
    rows = [
        [
            label_of(_ALL, system), *score_means.means(runs, MEASURES),
            tables.spread([gold_areas.even_share(run) for run in runs]),
        ]
        for system, runs in systems.items()
    ]  # fmt: skip
    headings = ["attention", *MEASURES.values(), "the same of even attention"]
    filled = [any(cell != tables.NOTHING for cell in cells) for cells in zip(*rows, strict=True)]
    headings, *rows = ([*itertools.compress(cells, filled)] for cells in (headings, *rows))
    return tables.table(headings, rows) if rows else ""


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
