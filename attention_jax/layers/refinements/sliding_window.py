"""Sliding window: each position attends to those near it only, at a cost that is linear.

  position t attends to t - size + 1 .. t, and where nothing is causal to t + size - 1 as well

The window's slots are gathered, so that scores and weights are computed for them alone.
"""

import dataclasses

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.refinement import Head
from attention_jax.ops.windows import Window
from attention_jax.types import Array, Memory, Params

PAPER = "Beltagy, Peters and Cohan (2020), Longformer, section 3.1"
ORDER = 80
IS_POSITIONAL = True


@dataclasses.dataclass(frozen=True)
class Config:
    """A sliding window.

    Attributes:
      size: How many positions it reaches back, the present one included.
    """

    size: int = setting(64, at_least=1)


def refine(config: Config, parts: MechanismParts, head: Head) -> MechanismParts:
    """Places the window; raises `ValueError` if there is one already."""
    if parts.spec.window is not None:
        raise ValueError(
            "attention.refinements: expected a score over all slots for 'sliding_window', found "
            "one with a window of its own"
        )
    is_causal = head.place == "causal"
    offsets = jnp.arange(1 - config.size, 1 if is_causal else config.size)

    def window(params: Params, query: Array, memory: Memory, positions: Array) -> Window:
        center = jnp.broadcast_to(positions, query.shape[:-1])
        slots = center[..., None] + offsets
        return Window(center.astype(jnp.float32), slots, jnp.ones(slots.shape, bool))

    return parts._replace(
        spec=dataclasses.replace(parts.spec, window=window, fused=None), is_causal=is_causal
    )
