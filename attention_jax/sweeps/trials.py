"""Search over fields of a config by optuna: trials, each a cell of a sweep, one after another.

What a trial was and what came of it is in the sweep itself: a search that was cut off goes on from
its records, and nothing else is stored.
"""

import contextlib
import dataclasses
import importlib.util
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attention_jax.errors import UserError
from attention_jax.sweeps.grid import GridRun
from attention_jax.sweeps.measure import Measure
from attention_jax.sweeps.space import Names, Range, read_space
from attention_jax.sweeps.sweep import Plan, Sweep

_NAME = "trial_"


def check_space(plan: Plan) -> None:
    """Checks that a plan's search can be made, before any trial: both ends of each range fit.

    Raises:
      UserError: If one does not, or optuna is not installed.
    """
    space = read_space(plan.search["space"])
    first = {path: values.ends[0] for path, values in space.items()}
    ends = {f"{p}={end}": {**first, p: end} for p, each in space.items() for end in each.ends}
    _ = Sweep(Path(), dataclasses.replace(plan, cells=ends)).experiments
    _require_optuna()


def _require_optuna() -> None:
    if importlib.util.find_spec("optuna") is None:
        raise UserError("--search: expected optuna, found none; pip install 'attention-jax[sweep]'")


class Trials:
    """The trials of a sweep that are yet to be made: a `runner.Queue`."""

    def __init__(self, sweep: Sweep, measure: Measure):
        """Tells optuna of the trials that are finished.

        Args:
          sweep: A sweep with a `search`.
          measure: What is to be as low, or as high, as it can be.

        Raises:
          UserError: If optuna is not installed.
        """
        _require_optuna()
        search = sweep.plan.search
        self._sweep, self._measure = sweep, measure
        self._space = read_space(search["space"])
        self._seeds: Sequence[int] = search["seeds"]
        known = [cell for cell in sweep.plan.cells if cell.startswith(_NAME)]
        self._number = len(known)
        self._left = max(search["trials"] - self._number, 0)
        self._waiting: list[GridRun] = []
        self._trials: dict[str, Any] = {}
        self._study = _study(measure, seed=self._number)
        self._distributions = {path: _distribution(each) for path, each in self._space.items()}
        for cell in known:
            self._remember(cell)

    def take(self) -> GridRun | None:
        """Returns the next run, of a new trial where all of the last one are taken."""
        while not self._waiting and self._left:
            self._left -= 1
            self._ask()
        return self._waiting.pop(0) if self._waiting else None

    def left(self) -> int:
        """Returns how many runs are still to be taken."""
        return len(self._waiting) + self._left * len(self._seeds)

    def finished(self, run: GridRun) -> None:
        """Tells optuna of a trial whose last run this is."""
        if all(each.is_finished() for each in self._runs(run.cell)):
            self._tell(run.cell)

    def _ask(self) -> None:
        """Begins a trial; one of values that were tried already is over at once."""
        import optuna

        trial = self._study.ask(self._distributions)
        overrides = {path: _text(value) for path, value in trial.params.items()}
        before, name = self._sweep.plan, f"{_NAME}{self._number}"
        self._number += 1
        runs = [(name, seed) for seed in self._seeds]
        more = Plan(before.config, before.overrides, {name: overrides}, runs)
        self._sweep = self._sweep.grown(more)
        (cell,) = [cell for cell, known in self._sweep.plan.cells.items() if known == overrides]
        if cell in self._trials:  # it is being tried
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return
        self._trials[cell] = trial
        self._waiting = [run for run in self._runs(cell) if not run.is_finished()]
        if not self._waiting:
            self._tell(cell)

    def _tell(self, cell: str) -> None:
        import optuna

        value, trial = self._measure.mean(self._runs(cell)), self._trials.pop(cell)
        if value is None:
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(trial, value)

    def _remember(self, cell: str) -> None:
        """Tells optuna of a trial of an earlier start, if it is finished and of this space."""
        import optuna

        overrides, runs = self._sweep.plan.cells[cell], self._runs(cell)
        if overrides.keys() != self._space.keys() or not all(run.is_finished() for run in runs):
            return
        value = self._measure.mean(runs)
        if value is None:
            return
        with contextlib.suppress(ValueError):  # the space was another, which had these values
            params = {path: _value(self._space[path], text) for path, text in overrides.items()}
            trial = optuna.trial.create_trial(
                params=params, distributions=self._distributions, value=value
            )
            self._study.add_trial(trial)

    def _runs(self, cell: str) -> list[GridRun]:
        return [run for run in self._sweep.runs if run.cell == cell]


def _study(measure: Measure, seed: int) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        # Trials that are under way count as bad: those beside them then try something else.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    direction = "minimize" if measure.better == "min" else "maximize"
    return optuna.create_study(sampler=sampler, direction=direction)


def _distribution(values: Range | Names) -> Any:
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if isinstance(values, Names):
        return CategoricalDistribution(values.values)
    if values.is_whole:
        return IntDistribution(int(values.low), int(values.high), log=values.is_log)
    return FloatDistribution(values.low, values.high, log=values.is_log)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _value(values: Range | Names, text: str) -> Any:
    if isinstance(values, Names):
        return text
    return int(text) if values.is_whole else float(text)
