"""Sweep: a directory of runs that differ in a few fields, which grows with what is asked of it.

`sweep.json` says which runs there are: the config that all of them share, the cells by name, each a
few overrides of it, and cell and seed of every run in the order in which they were asked for. A run
is in `CELL/seedK`, and its record in `records.zip` once it is finished.
"""

import dataclasses
import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_jax.errors import ConfigError, RunDirectoryError, UserError
from attention_jax.json_files import Maybe
from attention_jax.locks import locked
from attention_jax.paths import expanded
from attention_jax.runs.config import (
    ExperimentConfig,
    changed_fields,
    from_config_dict,
    to_plain,
)
from attention_jax.runs.config_file import load_config
from attention_jax.runs.files import write_json
from attention_jax.runs.run_directory import RunDirectory, read_json, writing
from attention_jax.sweeps.axes import Overrides
from attention_jax.sweeps.grid import Grid, GridRun

FILE, _LOCK = "sweep.json", ".sweep.lock"
_SHAPE = {
    "config": str, "overrides": {str: str}, "evaluate": [str], "cells": {str: {str: str}},
    "runs": [[object]],
    "search": Maybe(({"space": [str], "trials": int, "seeds": [int]}, None)),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Plan:
    """The content of `sweep.json`.

    Attributes:
      config: The config file of all runs, with its argument.
      overrides: What all runs change of it.
      cells: What each cell changes, by name.
      runs: Cell and seed of every run.
      evaluate: Options of `launch.evaluate`, which follows training; empty for not at all.
      search: How cells are searched for, beside those that are named: the `space` as it was given,
        the number of `trials`, and the `seeds` of each; None for not at all.
    """

    config: str
    overrides: Overrides
    cells: Mapping[str, Overrides]
    runs: Sequence[tuple[str, int]]
    evaluate: Sequence[str] = ()
    search: Mapping[str, Any] | None = None

    @classmethod
    def asked(
        cls, config: str, overrides: Iterable[tuple[str, str]], cells: Mapping[str, Overrides],
        seeds: int, search: Mapping[str, Any] | None = None, **more: Any,
    ) -> "Plan":  # fmt: skip
        """Makes the plan of cells and a number of seeds, seed by seed: the first compares all.

        The trials of a search, if there are any, have the same seeds.

        Raises:
          UserError: If a cell changes the seed.
        """
        shared = dict(overrides)
        first = int(shared.pop("seed", load_config(config).get("seed", 0)))
        if any("seed" in changes for changes in cells.values()):
            raise UserError("--grid: expected fields but the seed, which --seeds=N varies")
        numbers = range(first, first + seeds)
        runs = [(cell, seed) for seed in numbers for cell in cells]
        found = {**search, "seeds": [*numbers]} if search else None
        return cls(config, shared, cells, runs, search=found, **more)

    def joined(self, more: "Plan", where: Path) -> "Plan":
        """Adds what is asked for to what is known; cells with the same overrides are the same.

        Raises:
          RunDirectoryError: If they share another config.
        """
        base, other = ({"config": one.config, **one.overrides} for one in (self, more))
        if changed := changed_fields(base, other):
            said = "; ".join(f"{path} {old!r}, now {new!r}" for path, (old, new) in changed.items())
            raise RunDirectoryError(
                f"{where} holds a sweep of another config: {said}; choose another --workdir"
            )
        cells, called = dict(self.cells), {}
        for name, overrides in more.cells.items():
            same = [known for known, before in cells.items() if before == overrides]
            whole = ",".join(f"{path}={text}" for path, text in overrides.items())
            called[name] = same[0] if same else whole if name in cells else name
            cells[called[name]] = overrides
        runs = [*self.runs, *((called[cell], seed) for cell, seed in more.runs)]
        return Plan(
            self.config, self.overrides, cells, list(dict.fromkeys(runs)),
            more.evaluate or self.evaluate, more.search or self.search,
        )  # fmt: skip


class Sweep:
    """The runs of a directory."""

    def __init__(
        self, directory: Path, plan: Plan, known: Mapping[str, ExperimentConfig] | None = None
    ):
        """Takes the plan as it is; see `open_sweep`.

        Args:
          directory: Where the runs are.
          plan: Which they are.
          known: The configs of cells that were checked already.
        """
        self.directory = directory
        self.plan = plan
        self._known = known or {}

    @functools.cached_property
    def experiments(self) -> dict[str, ExperimentConfig]:
        """The config of each cell, checked.

        Raises:
          ConfigError: If an override does not fit the config.
        """
        plain = Grid(
            name=self.directory.name, config=self.plan.config, cells=self.plan.cells, seeds=(),
            overrides=self.plan.overrides,
        )  # fmt: skip
        folder, known = self.directory.parent, self._known
        return {
            cell: known.get(cell) or plain.run(cell, 0, folder, folder).experiment()
            for cell in self.plan.cells
        }

    @functools.cached_property
    def split(self) -> str:
        """The split that is reported: `test` if it is evaluated; empty for none."""
        splits = next(iter(self.experiments.values())).evaluation.splits
        return "test" if "test" in splits else "".join(splits[-1:])

    @functools.cached_property
    def runs(self) -> list[GridRun]:
        """All runs, in the order in which they were asked for."""
        tasks = [config.task for config in self.experiments.values()]
        has_statistics = all(task.statistics and not task.continues for task in tasks)
        resamples = RunDirectory(self.directory).resamples(self.split).name
        metrics = [metric.name for task in tasks for metric in task.metrics]
        watched = [config.training.metric for config in self.experiments.values()]
        grid = Grid(
            name=self.directory.name, config=self.plan.config, cells=self.plan.cells, seeds=(),
            overrides=self.plan.overrides, evaluate=self.plan.evaluate,
            kept={resamples: None} if self.split and has_statistics else {},
            curves=list(dict.fromkeys([*watched, "nll", "perplexity", *metrics])),
        )  # fmt: skip
        folder = self.directory.parent
        return [grid.run(cell, seed, folder, folder) for cell, seed in self.plan.runs]

    def grown(self, more: Plan) -> "Sweep":
        """Returns the sweep with more runs, which are written to `sweep.json`.

        Raises:
          ConfigError: If an override does not fit the config.
          RunDirectoryError: If it cannot be written, or holds a sweep of another config.
        """
        path = self.directory / FILE
        with writing(path), locked(self.directory / _LOCK, remove=True):
            # Read under the lock, or what another process has just added would be lost.
            plan = _read(path).joined(more, self.directory) if path.exists() else more
            sweep = Sweep(self.directory, plan, self.experiments)
            _ = sweep.experiments
            write_json(path, dataclasses.asdict(plan))
        return sweep

    def check(self) -> None:
        """Checks that all configs are well-formed, and finished runs are of the present ones.

        Raises:
          ConfigError: If an override does not fit the config.
          RunDirectoryError: If the config file has been changed since.
        """
        for run in self.runs:
            if not run.is_finished():
                continue
            record = run.record()
            try:
                before = to_plain(from_config_dict(record.config))
            except ConfigError:  # of code that is no more
                continue
            changed = changed_fields(before, to_plain(run.experiment(record.config)))
            if changed:
                path, (old, new) = next(iter(changed.items()))
                raise RunDirectoryError(
                    f"{run.workdir} was made with {path} {old!r}, now {new!r}; choose another "
                    "--workdir"
                )


def open_sweep(workdir: str, asked: Plan | None) -> Sweep:
    """Opens a sweep and adds to it what is asked for.

    Args:
      workdir: Its directory; made if something is asked for.
      asked: More runs; None for those that are known.

    Raises:
      RunDirectoryError: If the directory cannot be written, or holds something else.
    """
    directory = expanded(workdir).absolute()
    path = directory / FILE
    if asked is None and not path.exists():
        raise RunDirectoryError(f"{directory}: expected the directory of a sweep, found no {FILE}")
    if asked is not None:
        _refuse_foreign(directory)
    known = Sweep(directory, _read(path) if path.exists() else asked)
    known.check()  # before anything is written
    if asked is None:
        return known
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    return known.grown(asked)


def _read(path: Path) -> Plan:
    found = read_json(path, _SHAPE)
    return Plan(**{**found, "runs": [(cell, seed) for cell, seed in found["runs"]]})


def _refuse_foreign(directory: Path) -> None:
    """Refuses a directory that holds other files but no sweep (RunDirectoryError)."""
    if directory.is_file():
        raise RunDirectoryError(f"{directory}: expected a directory, found a file")
    names = sorted(os.listdir(directory)) if directory.exists() else []
    foreign = [name for name in names if not name.startswith(".")]
    if foreign and FILE not in foreign:
        raise RunDirectoryError(
            f"{directory}: expected a new directory or a sweep, found one with {foreign[0]!r} and "
            f"no {FILE}"
        )
