"""Decoder state in a search: one copy for each hypothesis, following its beam."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int


def repeat_state(state: Any, batch: int, hypotheses: int) -> Any:
    """Repeats a state for K hypotheses: leaves `B 1 ...` become `B K ...`.

    Raises:
      ValueError: Naming the first leaf of another shape.
    """

    def repeat(path, leaf):
        if leaf.shape[:2] != (batch, 1):
            raise ValueError(
                f"state{jax.tree_util.keystr(path)}: expected leading axes ({batch}, 1), "
                f"found shape {leaf.shape}"
            )
        return jnp.broadcast_to(leaf, (batch, hypotheses, *leaf.shape[2:]))

    return jax.tree_util.tree_map_with_path(repeat, state)


def follow(tree: Any, parents: Int[Array, "B K"]) -> Any:
    """Reorders the beam: takes each leaf's entry of the hypothesis that is continued."""
    take = jax.vmap(lambda leaf, parent: jnp.take(leaf, parent, axis=0, mode="clip"))
    return jax.tree.map(lambda leaf: take(leaf, parents), tree)
