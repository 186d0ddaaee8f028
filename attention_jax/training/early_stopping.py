"""Early stopping: the validation metric's best step, and when to give up."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Self

from attention_jax.data.task import Metric, by_name
from attention_jax.errors import ConfigError
from attention_jax.runs.config import ExperimentConfig, TrainingConfig

# Of known targets; those of outputs are the task's.
_BETTER = {"accuracy": "max", "loss": "min", "nll": "min", "perplexity": "min"}


def watched_fields(name: str, metrics: Sequence[Metric]) -> tuple[str, ...]:
    """Lists the parts of a config that decide what a metric measures, beside the model's.

    Args:
      name: Of the metric.
      metrics: Those by which the task judges outputs.
    """
    metric = by_name(metrics).get(name)
    if metric is None:
        return ()
    return ("search", "evaluation.num_validation_examples", *metric.decided_by)


def check_mode(name: str, mode: str, where: str, metrics: Sequence[Metric]) -> None:
    """Refuses to look for the worst value of a metric whose good ones are known.

    Args:
      name: Of the metric.
      mode: Whether a good one is said to be low (`min`) or high (`max`).
      where: Path of the mode in the config.
      metrics: Those by which the task judges outputs.

    Raises:
      ConfigError: If it is the other way round.
    """
    better = {**_BETTER, **{metric.name: metric.better for metric in metrics}}.get(name, mode)
    if mode != better:
        level = {"max": "higher", "min": "lower"}[better]
        raise ConfigError(
            f"{where}: expected {better!r} for {name!r}, which is better the {level} it is, "
            f"found {mode!r}"
        )


def settled_step(config: ExperimentConfig) -> int:
    """Returns the step after which nothing is switched on or released any more.

    A step before is not compared with others: it would be the best for want of what was to come.
    """
    freezing = config.training.freezing
    frozen = freezing.start_steps + freezing.num_steps
    return max([frozen, *(term.schedule.start_steps for term in config.objectives.values())])


@dataclasses.dataclass(frozen=True)
class Watch:
    """What the trainer remembers between validations, and a checkpoint keeps.

    Attributes:
      best: Best value of the metric so far.
      best_step: Updates made when it was measured.
      waited: Validations since it last improved.
      stopped: Whether training has ended early.
      ends_best: Whether training has ended with a value that is no worse, measured for that end
        alone: the last step is evaluated then, but a training that goes on knows nothing of it.
      seconds: Time spent training, in all processes that worked on the run one after another.
      time_use: What it went into, by part, in seconds.
    """

    best: float | None = None
    best_step: int | None = None
    waited: int = 0
    stopped: bool = False
    ends_best: bool = False
    seconds: float = 0.0
    time_use: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def resumed(self, config: TrainingConfig) -> Self:
        """Returns what to remember where training goes on, perhaps with other patience."""
        return dataclasses.replace(self, stopped=self._is_over(config), ends_best=False)

    def ended(self, value: float, config: TrainingConfig) -> Self:
        """Returns what to remember after a validation that is made for the end of training alone.

        A training made longer is the one that was as long from the beginning, which makes no such
        validation: the best of those that it makes, and patience, stay as they were.
        """
        sign = 1.0 if config.mode == "min" else -1.0
        best = math.inf if self.best is None else sign * self.best
        return dataclasses.replace(self, ends_best=sign * value <= best)

    def is_best(self, step: int) -> bool:
        """Whether a step that has just been validated is the one to evaluate."""
        return self.ends_best or self.best_step == step

    def _is_over(self, config: TrainingConfig) -> bool:
        return bool(config.patience) and self.waited >= config.patience

    def after(self, value: float, step: int, config: TrainingConfig) -> Self:
        """Returns what to remember after a validation at `step` measured `value`.

        An equal value moves the best step, since the newer checkpoint is the one that is kept,
        but is no improvement to be patient for. A value that is not a number is neither.
        """
        sign = 1.0 if config.mode == "min" else -1.0
        best = math.inf if self.best is None else sign * self.best
        improved = sign * value < best
        waited = 0 if improved else self.waited + 1
        changed = dataclasses.replace(self, waited=waited).resumed(config)
        if improved or sign * value == best:
            changed = dataclasses.replace(changed, best=value, best_step=step)
        return changed
