"""Copying words that no vocabulary has, in code from descriptions; see `USAGE`.

The claims: Gu, Lu, Li and Li (ACL 2016) and See, Liu and Manning (ACL 2017), that a model which may
copy words of its source writes those that it does not know, and so writes better; Luong et al.
(ACL 2015), that unknown words may be replaced afterwards, by attention.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.runs.files import write_text
from experiments.kit import program, program_outcomes, seeds, tables, templates
from experiments.kit.grid import SMOKE, Grid, Run
from experiments.kit.program_outcomes import ProgramOutcomes
from experiments.kit.templates import section

NAME = "copying"
TITLE = "Copying: names that no vocabulary has, in code"
USAGE = """
Compares models that copy with those that replace unknown words, leave them or write subwords, on
code from descriptions (Django and Hearthstone), with three seeds each.

usage: python -m experiments.copying [--OPTION=VALUE ...]
"""
BASE = "replaced"
SEEDS = (0, 1, 2)
DATA = {"django": "Django", "hearthstone": "Hearthstone"}
Found = Mapping[str, Mapping[str, Sequence[Run]]]


@dataclasses.dataclass(frozen=True)
class System:
    """A way to write words that are not in the vocabulary.

    Attributes:
      label: How tables call it.
      overrides: What it changes of its config.
      config: The config file, without `configs/` and its suffix.
    """

    label: str
    overrides: Mapping[str, Any]
    config: str = "see2017"


_WITHOUT_COVERAGE = {"model.attention.name": "bahdanau", "objectives.coverage_loss": False}
_GENERATING = {**_WITHOUT_COVERAGE, "model.readout.name": "softmax"}

SYSTEMS: Mapping[str, System] = {
    "words": System("words, unknown left", {**_GENERATING, "search.forbid_unknown": False}),
    "replaced": System("words, unknown replaced", {
        **_GENERATING, "search.forbid_unknown": False, "search.replace_unknown": True,
    }),
    "copynet": System("CopyNet", {}, config="gu2016"),
    "pointer_generator": System("pointer-generator", _WITHOUT_COVERAGE),
    "coverage": System("pointer-generator, coverage", {}),
    "subwords": System("subwords", {
        **_GENERATING, "search.forbid_unknown": False, "data.subwords.kind": "bpe",
        "data.subwords.size": 4000,
    }),
}  # fmt: skip


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    pairs = [(data, name) for data in (["smoke"] if smoke else DATA) for name in SYSTEMS]
    # Made-up code has too few characters for more subwords.
    few = {"data.subwords.size": 60}
    return Grid(
        name=f"{NAME}_smoke" if smoke else NAME,
        config={f"{data}.{name}": f"configs/{SYSTEMS[name].config}.py:{data}"
                for data, name in pairs},
        overrides=SMOKE if smoke else {},
        cells={
            f"{data}.{name}": {
                **SYSTEMS[name].overrides, **(few if smoke and name == "subwords" else {})
            }
            for data, name in pairs
        },
        seeds=(0,) if smoke else SEEDS,
        after=("experiments.kit.program_outcomes",),
        kept={program_outcomes.FILE: (program_outcomes.ARRAY,)},
    )  # fmt: skip


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
        data, _, system = run.cell.partition(".")
        found.setdefault(data, {}).setdefault(system, []).append(run)
    text = templates.fill(
        NAME, opening=section(tables.opening(TITLE, NAME, grid, runs)),
        **{data: _table(found.get(data, {})) for data in DATA},
        differences=_differences(found), reading=section(tables.reading(out / grid.name)),
        provenance=tables.provenance(runs),
    )  # fmt: skip
    page = out / f"{grid.name}.md"
    write_text(page, text + "\n")
    return [page]


def outcomes_of(runs: Sequence[Run]) -> list[ProgramOutcomes]:
    """Returns what is right of the programs of each run."""
    arrays = [run.arrays(program_outcomes.FILE)[program_outcomes.ARRAY] for run in runs]
    return [ProgramOutcomes(counts.astype(np.float64)) for counts in arrays]


def _table(systems: Mapping[str, Sequence[Run]]) -> str:
    """Makes a row for each system of a data set."""
    rows = []
    for name, system in SYSTEMS.items():
        if name not in systems:
            continue
        runs = systems[name]
        parameters = [run.facts()["num_parameters"] for run in runs]
        rows.append([
            system.label,
            *(tables.spread([run.scores().get(score) for run in runs])
              for score in ("exact_match", "bleu")),
            tables.spread([each.rare_word_recall for each in outcomes_of(runs)]),
            f"{max(parameters):,}",
        ])  # fmt: skip
    headings = ["system", "exact match", "BLEU", "recall of rare words", "parameters"]
    return tables.table(headings, rows) if rows else ""


def _differences(found: Found) -> str:
    """Compares each system with the replacement of unknown words, data set by data set."""
    rows = []
    for data, systems in found.items():
        if BASE not in systems:
            continue
        base = outcomes_of(systems[BASE])
        for name, runs in systems.items():
            if name == BASE:
                continue
            test = seeds.compare(base, outcomes_of(runs))
            rows.append([
                DATA.get(data, data), SYSTEMS[name].label, f"{test.difference:+.2f}",
                tables.interval(test), tables.probability(test.p_value, seeds.RESAMPLES),
            ])  # fmt: skip
    headings = ["data", "system", "exact match, against replacement", "95 % interval", "p"]
    return tables.table(headings, rows) if rows else ""


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
