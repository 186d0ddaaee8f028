"""Train state: everything that a step changes, as one pytree that a checkpoint holds whole."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from attention_jax.types import Model, Params
from attention_jax.updates.averaging import Averaging, start_average
from attention_jax.updates.gradient_spikes import start_norms
from attention_jax.updates.schedules import Leaf, PlateauState


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    """The state of training between two steps.

    Attributes:
      step: int32 scalar, steps taken, those included whose update was skipped.
      params: The model's parameters.
      optimizer: The optimiser's state.
      average: Moving average of the parameters (a tree like theirs), or None where none is kept.
      plateau: The state of the schedule `plateau`.
      norms: Norms of the last gradients, or None where none is skipped for standing out.
      carried: What objectives carry from step to step, by their names; mostly nothing.
      skipped: int32 scalar, updates skipped because of their gradient.
      skipped_in_a_row: int32 scalar, those since the last update that was made.
    """

    step: Leaf
    params: Params
    optimizer: Any
    average: Any
    plateau: PlateauState
    norms: Any
    skipped: Leaf
    skipped_in_a_row: Leaf
    carried: Any = dataclasses.field(default_factory=dict)


def start_state(
    model: Model,
    optimizer: optax.GradientTransformation,
    rng: Array,
    *,
    averaging: Averaging,
    max_gradient_ratio: float = 0.0,
    carried: Any = None,
) -> TrainState:
    """Draws parameters and returns the state before the first step.

    `carried` is what `Objective.start` returns, where objectives carry something.

    Pure, so that it can be evaluated for its shapes alone, and jitted with shardings.
    """
    params = model.init(rng)
    return TrainState(
        step=jnp.int32(0),
        params=params,
        optimizer=optimizer.init(params),
        average=start_average(averaging, params),
        plateau=PlateauState.start(),
        norms=start_norms(max_gradient_ratio),
        skipped=jnp.int32(0),
        skipped_in_a_row=jnp.int32(0),
        carried=carried or {},
    )
