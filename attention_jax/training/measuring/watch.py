"""Watching the validation metric: which step is the best, and when to give up."""

import dataclasses
import math
from typing import Self

from attention_jax.training.config import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Watch:
    """What the trainer remembers between validations, and a checkpoint keeps.

    Attributes:
      best: Best value of the metric so far.
      best_step: Updates made when it was measured.
      waited: Validations since it last improved.
      stopped: Whether training has ended early.
      seconds: Time spent training, in all processes that worked on the run one after another.
    """

    best: float | None = None
    best_step: int | None = None
    waited: int = 0
    stopped: bool = False
    seconds: float = 0.0

    def after(self, value: float, step: int, config: TrainingConfig) -> Self:
        """Returns what to remember after a validation at `step` measured `value`.

        An equal value moves the best step, since the newer checkpoint is the one that is kept,
        but is no improvement to be patient for. A value that is not a number is neither.
        """
        sign = 1.0 if config.mode == "min" else -1.0
        best = math.inf if self.best is None else sign * self.best
        improved = sign * value < best
        waited = 0 if improved else self.waited + 1
        stopped = bool(config.patience) and waited >= config.patience
        changed = dataclasses.replace(self, waited=waited, stopped=stopped)
        if improved or sign * value == best:
            changed = dataclasses.replace(changed, best=value, best_step=step)
        return changed
