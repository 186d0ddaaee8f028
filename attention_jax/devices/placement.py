"""The training state before it exists: shape, type and place of every leaf."""

from collections.abc import Callable

import jax

from attention_jax.devices import Strategy
from attention_jax.updates.state import TrainState


def placed_shapes(
    start: Callable[[jax.Array], TrainState], strategy: Strategy
) -> TrainState:
    """Returns shape, type and placement of the state that `start` would return."""
    shapes = jax.eval_shape(start, jax.random.key(0))
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        shapes,
        strategy.shardings(shapes),
    )
