"""Early stopping: the validation metric's best step, and when to give up."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Self

from attention_jax.data.task import Metric, by_name
from attention_jax.errors import ConfigError
from attention_jax.runs.config import ExperimentConfig, TrainingConfig

# Metrics under teacher forcing; whether BLEU or an error rate is better high, the task says.
BETTER = {"accuracy": "max", "loss": "min", "nll": "min", "perplexity": "min"}


def watched_fields(name: str, metrics: Sequence[Metric]) -> tuple[str, ...]:
    """Lists the config groups, beside the model's, on which the value of a metric depends.

    Perplexity under teacher forcing depends on none; BLEU depends on the search, for example.

    Args:
      name: The metric's name.
      metrics: The task's metrics of decoded outputs.
    """
    metric = by_name(metrics).get(name)
    if metric is None:
        return ()
    return ("search", "evaluation.num_validation_examples", *metric.decided_by)


def check_mode(name: str, mode: str, where: str, metrics: Sequence[Metric]) -> None:
    """Refuses to minimise a metric that is better high, such as BLEU, or the other way round.

    Args:
      name: The metric's name; one that nobody knows is accepted with either mode.
      mode: Whether low (`min`) or high (`max`) values are said to be good.
      where: Path of the mode in the config, for the message.
      metrics: The task's metrics of decoded outputs.

    Raises:
      ConfigError: If the mode contradicts what is known of the metric.
    """
    better = {**BETTER, **{metric.name: metric.better for metric in metrics}}.get(name, mode)
    if mode != better:
        level = {"max": "higher", "min": "lower"}[better]
        raise ConfigError(
            f"{where}: expected {better!r} for {name!r}, which is better the {level} it is, "
            f"found {mode!r}"
        )


def settled_step(config: ExperimentConfig) -> int:
    """Returns the step after which no objective is switched on and no parameter (un)frozen.

    Validations up to it take no part in early stopping: the loss may only have been low because
    a term of it was still switched off.
    """
    freezing = config.training.freezing
    frozen = freezing.start_steps + freezing.num_steps
    return max([frozen, *(term.schedule.start_steps for term in config.objectives.values())])


@dataclasses.dataclass(frozen=True)
class EarlyStopping:
    """Early stopping: what the trainer remembers between validations, kept in checkpoints.

    Attributes:
      best: Best value of the metric so far.
      best_step: Updates made when it was measured.
      waited: Validations since it last improved.
      stopped: Whether training has ended early.
      ends_best: Whether an additional validation at the last step found a value no worse than
        `best`. The last step is then the one to evaluate; a training that is continued later
        forgets this again.
      seconds: Time spent training, summed over interrupted and resumed processes.
      time_use: The same seconds by part; see `TimeUse`.
    """

    best: float | None = None
    best_step: int | None = None
    waited: int = 0
    stopped: bool = False
    ends_best: bool = False
    seconds: float = 0.0
    time_use: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def resumed(self, config: TrainingConfig) -> Self:
        """Returns the record of a training that resumes, perhaps with another patience."""
        return dataclasses.replace(self, stopped=self._is_over(config), ends_best=False)

    def ended(self, value: float, config: TrainingConfig) -> Self:
        """Returns the record after a validation that happens only because training ends.

        The best step and the patience used stay as they were. A training that is made longer
        afterwards has to equal one that was as long from the beginning, and that one would not
        have validated here.
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
        # NaN compares as False both ways, so it neither improves nor becomes the best step.
        sign = 1.0 if config.mode == "min" else -1.0
        best = math.inf if self.best is None else sign * self.best
        improved = sign * value < best
        waited = 0 if improved else self.waited + 1
        # `resumed` looks at the new count and says whether patience is used up.
        changed = dataclasses.replace(self, waited=waited).resumed(config)
        if improved or sign * value == best:
            changed = dataclasses.replace(changed, best=value, best_step=step)
        return changed
