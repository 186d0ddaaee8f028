"""Placement of a training state before it exists: shape, type and sharding of every leaf."""

from collections.abc import Callable

import jax

from attention_jax.devices import Strategy
from attention_jax.types import Params
from attention_jax.updates.state import TrainState


def placed_shapes(
    start: Callable[[jax.Array], TrainState], strategy: Strategy, axes: Params
) -> TrainState:
    """Evaluates shape, type and sharding of the state that `start` would return.

    Args:
      start: Draws a state from a key; traced, not run.
      strategy: Decides the sharding.
      axes: The logical axes of the parameters, from `Model.parameter_axes`.

    Raises:
      ConfigError: If the strategy's rules do not fit the parameters.
    """
    shapes = jax.eval_shape(start, jax.random.key(0))
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        shapes,
        strategy.shardings(shapes, axes),
    )
