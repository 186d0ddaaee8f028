"""Decays of the learning rate: its factor as a function of the updates made, by name.

The number of updates is 0 before the first. Durations carry their unit, `_steps` or `_epochs`; of
such a pair at most one is set.
"""

import dataclasses
from typing import Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention_jax.configuration import setting

Step = Int[Array, ""] | int
Factor = Float[Array, ""]


@dataclasses.dataclass(frozen=True)
class Clock:
    """The length of training, in which schedules measure their durations.

    Attributes:
      steps_per_epoch: Updates in one pass over the training data.
      total_steps: Updates in the whole training.
    """

    steps_per_epoch: int
    total_steps: int

    def in_steps(self, steps: int, epochs: float) -> int:
        """Converts a duration to updates; it is given in one of the two units, the other is 0."""
        return steps or round(epochs * self.steps_per_epoch)


@runtime_checkable
class ScheduleConfig(Protocol):
    """The protocol of a schedule's config class."""

    name: str

    def factor(self, step: Step, clock: Clock) -> Factor:
        """Returns the factor of the learning rate after `step` updates."""
        ...


@dataclasses.dataclass(frozen=True)
class WarmedUp:
    """Linear warm-up, the base of most schedules: (step + 1) / warm-up until it is over.

    Attributes:
      warmup_steps: Length of the warm-up in updates.
      warmup_epochs: Length of the warm-up in passes over the data.
    """

    warmup_steps: int = setting(0, at_least=0)
    warmup_epochs: float = setting(0.0, at_least=0.0)

    def __post_init__(self) -> None:
        if self.warmup_steps and self.warmup_epochs:
            raise ValueError("warmup_steps: expected 0 where warmup_epochs is set")

    def factor(self, step: Step, clock: Clock) -> Factor:
        warmup = clock.in_steps(self.warmup_steps, self.warmup_epochs)
        # step + 1, so that the first update already has a learning rate above 0.
        rise = (_float(step) + 1.0) / max(warmup, 1)
        return jnp.where(_int(step) < warmup, rise, self.after_warmup(step, warmup, clock))

    def after_warmup(self, step: Step, warmup: int, clock: Clock) -> Factor | float:
        """Returns the factor once `warmup` updates are over; a subclass has it."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Constant(WarmedUp):
    """Constant learning rate: the factor 1, after the warm-up if there is one."""

    name: str = setting("constant", choices=("constant",))

    def after_warmup(self, step: Step, warmup: int, clock: Clock) -> Factor | float:
        return 1.0


@dataclasses.dataclass(frozen=True)
class WarmupCosine(WarmedUp):
    """Cosine decay from 1, after the warm-up, to `final_fraction` at the end of training.

    Attributes:
      final_fraction: Share of the learning rate that is left at the end.
    """

    name: str = setting("warmup_cosine", choices=("warmup_cosine",))
    final_fraction: float = setting(0.0, at_least=0.0, at_most=1.0)

    def after_warmup(self, step: Step, warmup: int, clock: Clock) -> Factor | float:
        share_left = 0.5 * (1.0 + jnp.cos(jnp.pi * _progress(step, warmup, clock)))
        return self.final_fraction + (1.0 - self.final_fraction) * share_left


@dataclasses.dataclass(frozen=True)
class WarmupLinear(WarmedUp):
    """Linear decay from 1, after the warm-up, to `final_fraction` at the end of training.

    Attributes:
      final_fraction: Share of the learning rate that is left at the end.
    """

    name: str = setting("warmup_linear", choices=("warmup_linear",))
    final_fraction: float = setting(0.0, at_least=0.0, at_most=1.0)

    def after_warmup(self, step: Step, warmup: int, clock: Clock) -> Factor | float:
        share_left = 1.0 - _progress(step, warmup, clock)
        return self.final_fraction + (1.0 - self.final_fraction) * share_left


@dataclasses.dataclass(frozen=True)
class InverseSqrt(WarmedUp):
    """Inverse square root decay, sqrt(warm-up / (step + 1)).

    The same curve as `noam`, scaled so that its peak is the learning rate itself.
    """

    name: str = setting("inverse_sqrt", choices=("inverse_sqrt",))

    def after_warmup(self, step: Step, warmup: int, clock: Clock) -> Factor | float:
        return jnp.sqrt(max(warmup, 1) / (_float(step) + 1.0))


@dataclasses.dataclass(frozen=True)
class Exponential(WarmedUp):
    """Exponential decay: `rate` to the power of the number of periods since the warm-up.

    Attributes:
      rate: Factor of one period.
      every_steps: Length of a period in updates; this or the next must be set.
      every_epochs: Length of a period in passes over the data.
      staircase: Whether the rate falls in steps, at the end of each period.
    """

    name: str = setting("exponential", choices=("exponential",))
    rate: float = setting(0.5, above=0.0, at_most=1.0)
    every_steps: int = setting(0, at_least=0)
    every_epochs: float = setting(0.0, at_least=0.0)
    staircase: bool = setting(False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.every_steps) == bool(self.every_epochs):
            found = "both" if self.every_steps else "neither"
            raise ValueError(f"every_steps: expected it or every_epochs, found {found}")

    def after_warmup(self, step: Step, warmup: int, clock: Clock) -> Factor | float:
        period = max(clock.in_steps(self.every_steps, self.every_epochs), 1)
        periods = (_float(step) - warmup) / period
        return self.rate ** (jnp.floor(periods) if self.staircase else periods)


@dataclasses.dataclass(frozen=True)
class Noam:
    """The Transformer's schedule: model_depth^-1/2 min(t^-1/2, t warmup_steps^-3/2), t = step + 1.

    It is the paper's learning rate if `optimizer.learning_rate` is 1.

    Source: Vaswani et al. 2017, equation 3.

    Attributes:
      model_depth: Depth of the model's vectors.
      warmup_steps: Updates until the peak.
    """

    name: str = setting("noam", choices=("noam",))
    model_depth: int = setting(512, at_least=1)
    warmup_steps: int = setting(4000, at_least=1)

    def factor(self, step: Step, clock: Clock) -> Factor:
        t = _float(step) + 1.0
        return self.model_depth**-0.5 * jnp.minimum(t**-0.5, t * self.warmup_steps**-1.5)


@dataclasses.dataclass(frozen=True)
class Luong2015:
    """Step decay of Luong et al.: halves at every epoch, first after `constant_epochs`.

    Source: Luong et al. 2015, section 4.1: 10 epochs, constant for 5; with dropout 12 and 8.

    Attributes:
      constant_epochs: Passes over the data before the first halving.
      halve_every_epochs: Passes over the data between two halvings.
    """

    name: str = setting("luong2015", choices=("luong2015",))
    constant_epochs: float = setting(5.0, at_least=0.0)
    halve_every_epochs: float = setting(1.0, above=0.0)

    def factor(self, step: Step, clock: Clock) -> Factor:
        start = clock.in_steps(0, self.constant_epochs)
        period = max(clock.in_steps(0, self.halve_every_epochs), 1)
        return _halved((_int(step) - start) // period + 1)


@dataclasses.dataclass(frozen=True)
class Sutskever2014(Luong2015):
    """Step decay of Sutskever et al.: halves at every half epoch, first after 5 of 7.5 epochs.

    Source: Sutskever et al. 2014, section 3.4.
    """

    name: str = setting("sutskever2014", choices=("sutskever2014",))
    halve_every_epochs: float = setting(0.5, above=0.0)


@dataclasses.dataclass(frozen=True)
class Luong234:
    """Step decay `luong234`: halves 4 times, at even distances, in the last third of training.

    As in tensorflow/nmt, where the name comes from, the first halving is one distance after the
    start of that third, so that the last one falls on the end of training.
    """

    name: str = setting("luong234", choices=("luong234",))

    def factor(self, step: Step, clock: Clock) -> Factor:
        return _late_halvings(step, clock.total_steps, clock.total_steps * 2 // 3, times=4)


@dataclasses.dataclass(frozen=True)
class Luong5:
    """Step decay: halves 5 times in the second half of training, otherwise as `luong234`."""

    name: str = setting("luong5", choices=("luong5",))

    def factor(self, step: Step, clock: Clock) -> Factor:
        return _late_halvings(step, clock.total_steps, clock.total_steps // 2, times=5)


@dataclasses.dataclass(frozen=True)
class Luong10:
    """Step decay: halves 10 times in the second half of training, otherwise as `luong234`."""

    name: str = setting("luong10", choices=("luong10",))

    def factor(self, step: Step, clock: Clock) -> Factor:
        return _late_halvings(step, clock.total_steps, clock.total_steps // 2, times=10)


def _late_halvings(step: Step, total: int, start: int, times: int) -> Factor:
    period = max((total - start) // times, 1)
    return _halved((_int(step) - start) // period)


def _halved(times: Int[Array, ""]) -> Factor:
    return jnp.ldexp(jnp.ones(()), -jnp.maximum(times, 0))  # exactly 2**-times


def _progress(step: Step, warmup: int, clock: Clock) -> Factor:
    """Returns the share of the training after the warm-up that has passed, from 0 to 1."""
    return jnp.clip((_float(step) - warmup) / max(clock.total_steps - warmup, 1), 0.0, 1.0)


def _float(step: Step) -> Factor:
    return jnp.asarray(step, float)


def _int(step: Step) -> Int[Array, ""]:
    return jnp.asarray(step, jnp.int32)
