"""Luong's local attention with monotonic alignment: a window that moves with the target.

  center[t] = t,   window = [center - D, center + D], clipped to the source

Any score may be used inside the window, which holds 2D+1 slots however long the source is. A
window that has run past the end of the source gives a zero context.
"""

import dataclasses

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.local_attention import LocalConfig, local_parts
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.ops.summation import accumulation_dtype
from attention_jax.ops.windows import Window, window_around
from attention_jax.types import Array, Memory, Params

PAPER = "Luong, Pham and Manning (2015), section 3.2 (local-m)"


@dataclasses.dataclass(frozen=True)
class Config(LocalConfig):
    """Local attention, monotonic: the heads have the same window.

    Further fields are those of `layers.local_attention.LocalConfig`.
    """

    name: str = setting("local_m")


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds local attention around its scoring mechanism."""

    def place(params: Params, query: Array, memory: Memory, positions: Array) -> Window:
        # T -> *B T; not in bfloat16, which has no odd numbers above 256.
        center = jnp.broadcast_to(positions.astype(accumulation_dtype(query)), query.shape[:-1])
        return window_around(center, config.half_width)

    return local_parts(config, query_dim, key_dim, place)
