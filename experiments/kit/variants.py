"""Variants: what the cells of a grid differ in, by themselves or crossed with one another.

A variant is a system, such as a mechanism, or a condition under which systems are tried, such as a
corpus; the cell of a system under a condition is `CONDITION.SYSTEM`.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from attention_jax.sweeps.grid import Grid, GridRun

SEEDS = (0, 1, 2)
# Overrides with which a run of a `:smoke` config takes seconds.
SMOKE: Mapping[str, Any] = {
    "training.num_steps": 4,
    "training.evaluate_every_steps": 0,
    "data.num_buckets": 1,
    "data.eval_batch_size": 128,
    "search.method": "greedy",
    "evaluation.num_heat_maps": 0,
}
# Runs of each system.
Cells = Mapping[str, Sequence[GridRun]]


@dataclasses.dataclass(frozen=True)
class Variant:
    """What a cell of a grid changes.

    Attributes:
      label: How tables call it.
      overrides: What it changes of its config, path -> value.
      config: Its config file, without `configs/` and its suffix; the grid's if empty.
      argument: What stands after the config's colon; the grid's if empty.
    """

    label: str
    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    config: str = ""
    argument: str = ""


MADE_UP: Mapping[str, Variant] = {"smoke": Variant("smoke")}  # the condition of tiny grids


def crossed(
    conditions: Mapping[str, Variant], systems: Mapping[str, Variant]
) -> dict[str, Variant]:
    """Crosses conditions with systems: a cell for each pair, condition by condition.

    What both change is as the system has it.
    """
    return {
        f"{condition}.{system}": Variant(
            f"{under.label}, {tried.label}",
            {**under.overrides, **tried.overrides},
            tried.config or under.config,
            under.argument or tried.argument,
        )
        for condition, under in conditions.items()
        for system, tried in systems.items()
    }


def grid_of(
    name: str, variants: Mapping[str, Variant], config: str, smoke: bool = False, **fields: Any
) -> Grid:
    """Returns the grid of variants, with three seeds, or a tiny one of theirs on made-up data.

    Args:
      name: Name of the experiment.
      variants: The cells.
      config: `FILE:ARGUMENT`, for variants that have none of their own.
      smoke: Whether it is to be the tiny one: of one seed, and of the argument `smoke`.
      fields: Further fields of the grid.
    """
    file, _, argument = config.partition(":")
    argument = "smoke" if smoke else argument
    overrides = {**(SMOKE if smoke else {}), **fields.pop("overrides", {})}
    return Grid(
        name=f"{name}_smoke" if smoke else name,
        config={
            cell: f"configs/{variant.config or file}.py:{variant.argument or argument}"
            for cell, variant in variants.items()
        },
        overrides=overrides,
        cells={cell: variant.overrides for cell, variant in variants.items()},
        seeds=SEEDS[:1] if smoke else SEEDS,
        **fields,
    )


def by_cell(runs: Sequence[GridRun]) -> dict[str, list[GridRun]]:
    """Groups finished runs by their cells, in the order of the grid."""
    cells = runs[0].grid.cells if runs else {}
    found = {cell: [run for run in runs if run.cell == cell] for cell in cells}
    return {cell: members for cell, members in found.items() if members}


def by_condition(runs: Sequence[GridRun]) -> dict[str, dict[str, list[GridRun]]]:
    """Groups finished runs of a crossed grid by condition and by system."""
    found: dict[str, dict[str, list[GridRun]]] = {}
    for cell, members in by_cell(runs).items():
        condition, _, system = cell.partition(".")
        found.setdefault(condition, {})[system] = members
    return found


def label_of(variants: Mapping[str, Variant], name: str) -> str:
    """Returns the label of a variant; its name where it is none of these."""
    return variants[name].label if name in variants else name
