"""Loss weight schedules: how the weight of an objective changes while a model is trained."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention_jax.configuration import setting


@dataclasses.dataclass(frozen=True)
class WeightSchedule:
    """Loss weight schedule: a factor that is off at first, then rises, then falls.

    factor(n) = min(1, (m + 1) / warmup_steps) 2^(-m / half_life_steps), with m = n - start_steps,
    and 0 where m < 0

    Attributes:
      start_steps: Training steps before the objective is switched on.
      warmup_steps: Steps in which the factor then rises to 1; 0 for at once.
      half_life_steps: Steps in which the factor halves; 0 for a constant one.

    Source:
      See et al. (2017), section 5, add their coverage loss to a trained model; Chen et al. (2016)
      let the weight of the guiding alignments decay.
    """

    start_steps: int = setting(0, at_least=0)
    warmup_steps: int = setting(0, at_least=0)
    half_life_steps: int = setting(0, at_least=0)

    @property
    def is_constant(self) -> bool:
        """Whether the factor is 1 at every step."""
        return self == WeightSchedule()

    def __call__(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Returns the factor at a training step, counted from 0."""
        since = jnp.asarray(step - self.start_steps, float)
        factor = jnp.ones(())
        if self.warmup_steps:
            factor = jnp.minimum(factor, (since + 1.0) / self.warmup_steps)
        if self.half_life_steps:
            factor = factor * 2.0 ** (-since / self.half_life_steps)
        # Both formulas give something else than zero before the start.
        return jnp.where(since < 0, 0.0, factor)
