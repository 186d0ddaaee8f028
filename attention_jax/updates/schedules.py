"""Learning-rate schedules: the decay of a config, found by name, times the learning rate."""

import dataclasses
from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.errors import ConfigError
from attention_jax.updates.decays import (
    Clock,
    Constant,
    Exponential,
    Factor,
    InverseSqrt,
    Luong5,
    Luong10,
    Luong234,
    Luong2015,
    Noam,
    ScheduleConfig,
    Step,
    Sutskever2014,
    WarmupCosine,
    WarmupLinear,
)
from attention_jax.updates.plateau import Plateau, PlateauState, after_validation

_SCHEDULES = {
    cls.name: cls
    for cls in (
        Constant,
        WarmupCosine,
        WarmupLinear,
        InverseSqrt,
        Exponential,
        Noam,
        Luong2015,
        Sutskever2014,
        Luong234,
        Luong5,
        Luong10,
        Plateau,
    )
}


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The learning rate as a function of the number of updates made.

    Attributes:
      config: The schedule.
      learning_rate: `optimizer.learning_rate`, which the schedule scales.
      clock: The length of training.
    """

    config: ScheduleConfig
    learning_rate: float
    clock: Clock

    @property
    def warmup_steps(self) -> int:
        """Length of the warm-up in updates; 0 for schedules without one."""
        return self.clock.in_steps(
            getattr(self.config, "warmup_steps", 0), getattr(self.config, "warmup_epochs", 0.0)
        )

    def __call__(self, step: Step, scale: Float[Array, ""] | float = 1.0) -> Factor:
        """Returns the learning rate of the next update; `scale` is `PlateauState.scale`."""
        factor = self.config.factor(step, self.clock)
        return jnp.asarray(self.learning_rate * factor * scale, float)

    def observe(self, state: PlateauState, metrics: Mapping[str, float]) -> PlateauState:
        """Lets `plateau` react to a validation; other schedules return the state unchanged.

        Raises:
          ConfigError: If the metric that `plateau` watches was not measured.
        """
        config = self.config
        if not isinstance(config, Plateau):
            return state
        if config.metric not in metrics:
            raise ConfigError(
                f"config.schedule.metric: expected one of {', '.join(sorted(metrics))}, "
                f"found {config.metric!r}"
            )
        value = jnp.asarray(metrics[config.metric], float)
        # `minimum` is a learning rate, the state a factor of it; and both modes become "lower is
        # better" by the sign.
        lowest = config.minimum / self.learning_rate if self.learning_rate else 0.0
        return after_validation(config, state, value if config.mode == "min" else -value, lowest)


def lookup(name: str) -> type:
    """Finds the config class of a schedule by its name, for `setting(named=lookup)`.

    Raises:
      KeyError: With the list of names, if there is no such schedule.
    """
    if name not in _SCHEDULES:
        raise KeyError(sorted(_SCHEDULES))
    return _SCHEDULES[name]


def build_schedule(
    config: ScheduleConfig, learning_rate: float, *, steps_per_epoch: int, total_steps: int
) -> Schedule:
    """Builds the learning-rate schedule of a training whose length is known."""
    return Schedule(config, learning_rate, Clock(steps_per_epoch, total_steps))
