"""Soft and hard attention on pictures: markup of formulas, and names of emoji; see `USAGE`.

The claim: Xu et al. (ICML 2015), table 1, that hard attention describes pictures as well as soft
attention does, or a little better.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.runs.files import write_text
from experiments.kit import program, seeds, tables, templates, word_outcomes
from experiments.kit.grid import SMOKE, Grid, Run
from experiments.kit.templates import section
from experiments.kit.word_outcomes import WordOutcomes

NAME = "captions"
TITLE = "Pictures and their captions: soft and hard attention"
USAGE = """
Compares soft and hard attention, and the penalty of doubly stochastic attention, on rendered
formulas and on emoji, by their base and by picture, three seeds each. Twenty-seven runs.

usage: python -m experiments.captions [--OPTION=VALUE ...]
"""
BASE = "soft"
SEEDS = (0, 1, 2)
Found = Mapping[str, Mapping[str, Sequence[Run]]]
_SOFT = {
    "model.attention.score.name": "bahdanau", "objectives.reinforce": False,
    "objectives.attention_entropy": False,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class System:
    """A way to attend.

    Attributes:
      label: How tables call it.
      overrides: What it changes of `configs/xu2015.py`.
    """

    label: str
    overrides: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Condition:
    """What is learnt.

    Attributes:
      label: How tables call it.
      argument: The data set of the config.
      overrides: How it is split.
    """

    label: str
    argument: str
    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)


SYSTEMS: Mapping[str, System] = {
    "soft": System("soft", _SOFT),
    "doubly_stochastic": System(
        "soft, doubly stochastic", {**_SOFT, "objectives.coverage_penalty.weight": 1.0}
    ),
    "hard": System("hard", {}),
}
CONDITIONS: Mapping[str, Condition] = {
    "formulas": Condition("formulas", "formulas"),
    "emoji_base": Condition("emoji, new bases", "emoji", {"data.split_by": "base"}),
    "emoji_picture": Condition("emoji, new pictures", "emoji", {"data.split_by": "picture"}),
}
MEASURES = {
    "exact_match": "exact match", "exact_pictures": "exact picture", "bleu_1": "BLEU-1",
    "bleu_4": "BLEU-4", "chrf": "chrF", "attention_in_gold": "attention in gold rectangles",
}  # fmt: skip


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on few formulas."""
    learnt = ("formulas",) if smoke else tuple(CONDITIONS)
    pairs = [(name, system) for name in learnt for system in SYSTEMS]
    small = {**SMOKE, "data.num_formulas": 64, "data.max_symbols": 8} if smoke else {}
    return Grid(
        name=f"{NAME}_smoke" if smoke else NAME,
        config={
            ".".join(pair): f"configs/xu2015.py:{CONDITIONS[pair[0]].argument}" for pair in pairs
        },
        overrides=small,
        cells={
            f"{name}.{system}": {**CONDITIONS[name].overrides, **SYSTEMS[system].overrides}
            for name, system in pairs
        },
        seeds=(0,) if smoke else SEEDS,
        after=("experiments.kit.word_outcomes",),
        kept={word_outcomes.FILE: (word_outcomes.ARRAY,)},
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
        condition, _, system = run.cell.partition(".")
        found.setdefault(condition, {}).setdefault(system, []).append(run)
    text = templates.fill(
        NAME, opening=section(tables.opening(TITLE, NAME, grid, runs)),
        **{name: _table(found.get(name, {})) for name in CONDITIONS},
        differences=_differences(found), reading=section(tables.reading(out / grid.name)),
        provenance=tables.provenance(runs),
    )  # fmt: skip
    page = out / f"{grid.name}.md"
    write_text(page, text + "\n")
    return [page]


def _table(systems: Mapping[str, Sequence[Run]]) -> str:
    """Makes a row for each system, with a column for each measure that any of them has."""
    shown = [
        name for name in MEASURES
        if any(name in run.scores() for runs in systems.values() for run in runs)
    ]  # fmt: skip
    rows = [
        [SYSTEMS[system].label, *(
            tables.spread([run.scores().get(name) for run in systems[system]]) for name in shown
        )]
        for system in SYSTEMS
        if system in systems
    ]  # fmt: skip
    return tables.table(["attention", *map(MEASURES.get, shown)], rows) if rows else ""


def _differences(found: Found) -> str:
    """Compares the exact match of each system with that of soft attention."""
    rows = []
    for name, systems in found.items():
        if BASE not in systems:
            continue
        base = _outcomes(systems[BASE])
        for system, runs in systems.items():
            if system == BASE:
                continue
            test = seeds.compare(base, _outcomes(runs))
            rows.append([
                CONDITIONS[name].label, SYSTEMS[system].label, f"{test.difference:+.2f}",
                tables.interval(test), tables.probability(test.p_value, seeds.RESAMPLES),
            ])  # fmt: skip
    headings = ["data", "attention", "exact match, against soft", "95 % interval", "p"]
    return tables.table(headings, rows) if rows else ""


def _outcomes(runs: Sequence[Run]) -> list[WordOutcomes]:
    arrays = [run.arrays(word_outcomes.FILE)[word_outcomes.ARRAY] for run in runs]
    return [WordOutcomes(counts.astype(np.float64)) for counts in arrays]


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
