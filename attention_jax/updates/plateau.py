"""Reduction on a plateau: the learning rate falls when a validation metric stops improving.

What it has seen of validations is part of the training state, so that a resumed run goes on with
the same learning rate.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.configuration import setting
from attention_jax.updates.decays import Clock, Factor, Step, WarmedUp

Leaf = Any  # an array, or in its place a shape or a sharding


@dataclasses.dataclass(frozen=True)
class Plateau(WarmedUp):
    """Reduction on a plateau: multiplies by a factor when a validation metric stops improving.

    Attributes:
      reduction: The factor.
      patience: Validations without improvement that are tolerated; 0 reacts to the first.
      minimum: Learning rate below which this schedule never goes.
      metric: Name of the validation metric.
      mode: Whether it improves by falling (`min`) or by rising (`max`).
    """

    name: str = setting("plateau", choices=("plateau",))
    reduction: float = setting(0.5, above=0.0, below=1.0)
    patience: int = setting(0, at_least=0)
    minimum: float = setting(0.0, at_least=0.0)
    metric: str = setting("nll")
    mode: str = setting("min", choices=("min", "max"))

    def after_warmup(self, step: Step, warmup: int, clock: Clock) -> Factor | float:
        return 1.0  # the reductions are in `PlateauState.scale`, for they depend on validations


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PlateauState:
    """The state of `plateau` between validations; constant under every other schedule.

    Attributes:
      scale: scalar, product of all reductions so far.
      best: scalar, the best value so far, negated where higher is better.
      waited: int32 scalar, validations since then, or since the last reduction.
    """

    scale: Leaf
    best: Leaf
    waited: Leaf

    @classmethod
    def start(cls) -> "PlateauState":
        """Returns the state before the first validation."""
        return cls(jnp.ones(()), jnp.full((), jnp.inf, float), jnp.int32(0))


def after_validation(
    config: Plateau, state: PlateauState, value: Float[Array, ""], lowest: float
) -> PlateauState:
    """Plateau: returns the state after a validation.

    Args:
      config: The schedule.
      state: Before it.
      value: scalar, what was measured, negated where higher is better.
      lowest: The scale that is not undercut.
    """
    # NaN compares as False: it is no improvement.
    improved = value < state.best
    waited = jnp.where(improved, 0, state.waited + 1)
    reduce = waited > config.patience
    # A scale that starts below the minimum must not be raised to it.
    reduced = jnp.minimum(state.scale, jnp.maximum(state.scale * config.reduction, lowest))
    return PlateauState(
        scale=jnp.where(reduce, reduced, state.scale),
        best=jnp.where(improved, value, state.best),
        waited=jnp.where(reduce, 0, waited),
    )
