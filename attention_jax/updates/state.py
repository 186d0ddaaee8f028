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
from attention_jax.updates.plateau import Leaf, PlateauState


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
      norms: Norms of the last gradients, against which spikes are detected, or None.
      carried: Statistics that objectives carry from step to step (such as a moving baseline), by
        the objectives' names; mostly empty.
      skipped: int32 scalar, updates skipped because of their gradient.
      skipped_in_a_row: int32 scalar, updates skipped since the last one that was made.
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
    """Draws the initial parameters and returns the train state before the first step.

    Pure, so that `jax.eval_shape` can tell its shapes and `jit` can place what it draws. `carried`
    is from `Objective.start`.
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
