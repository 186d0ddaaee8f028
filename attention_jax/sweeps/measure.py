"""Measure of a sweep: the metric of a split by which its runs are put in order."""

import dataclasses
import math
import re
from collections.abc import Sequence

import numpy as np

from attention_jax.errors import UserError, quoted
from attention_jax.sweeps.grid import GridRun
from attention_jax.sweeps.sweep import Sweep
from attention_jax.training.early_stopping import BETTER

# Of gold links, which `launch.evaluate` may have added to the results; those of an attribution, or
# of links that were chosen otherwise, have its name behind theirs.
_OF_LINKS = {"aer": "min", "saer": "min", "match": "max", "probability_mass": "max"}
_VALIDATION = "validation"


@dataclasses.dataclass(frozen=True)
class Measure:
    """A metric of a split.

    Attributes:
      name: Its name in `results.json` and `metrics.jsonl`.
      split: The split.
      better: `min` if low values are better, else `max`.
    """

    name: str
    split: str
    better: str

    @property
    def label(self) -> str:
        """The metric and its split, with an arrow towards what is better."""
        return f"{self.split} {self.name} {'↓' if self.better == 'min' else '↑'}"

    def of(self, run: GridRun) -> float | None:
        """Returns the value of a finished run, None if it has none.

        It is that of the parameters that are evaluated; where the split was not, the best that was
        logged in training.
        """
        found = run.results().get(self.split, {}).get(self.name)
        if found is None:
            logged = run.record().curves.get(self.name, {}).get(self.split, [[], []])[1]
            known = [value for value in logged if math.isfinite(value)]
            best = min if self.better == "min" else max
            return float(best(known)) if known else None
        return float(found)

    def mean(self, runs: Sequence[GridRun]) -> float | None:
        """Returns the mean over the seeds of a cell; None if one of them has no value."""
        values = [self.of(run) for run in runs]
        return None if not values or None in values else float(np.mean(values))

    def ordered(self, cells: dict[str, list[GridRun]]) -> list[str]:
        """Returns the cells that have values, the best first."""
        means = {cell: self.mean(runs) for cell, runs in cells.items()}
        known = {cell: mean for cell, mean in means.items() if mean is not None}
        return sorted(known, key=known.__getitem__, reverse=self.better == "max")


def chosen_measure(text: str | None, sweep: Sweep) -> Measure:
    """Reads `[SPLIT.]NAME[:min|max]`: of the validation unless another split is named.

    Without a text it is what the training of the first cell watches.

    Raises:
      UserError: If it is something else, or nothing says whether the metric is better low.
    """
    config = next(iter(sweep.experiments.values()))
    if text is None:
        return Measure(config.training.metric, _VALIDATION, config.training.mode)
    match = re.fullmatch(r"(?:([\w-]+)\.)?([\w-]+)(?::(min|max))?", text)
    if not match:
        raise UserError(f"--metric: expected [SPLIT.]NAME[:min|max], found {quoted(text)}")
    split, name, better = match.groups()
    of_task = {metric.name: metric.better for metric in config.task.metrics}
    of_links = next((way for start, way in _OF_LINKS.items() if f"{name}_".startswith(f"{start}_")),
                    None)  # fmt: skip
    better = better or {**BETTER, **of_task}.get(name, of_links)
    if better is None:
        raise UserError(
            f"--metric: expected {name}:min or {name}:max, for nothing says which is better, "
            f"found {quoted(text)}"
        )
    return Measure(name, split or _VALIDATION, better)
