"""Luong's local attention with monotonic alignment: a window that moves with the target.

  center[t] = t,   window = [center - D, center + D], clipped to the source

Any score may be used inside the window, which holds 2D+1 slots however long the source is. A
window that has run past the end of the source gives a zero context.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import (
    MechanismParts,
    check_window_score,
    find_config,
    find_mechanism,
)
from attention_jax.ops.summation import sum_type
from attention_jax.ops.windows import Window, window_around
from attention_jax.types import Array, Memory, Params

PAPER = "Luong, Pham and Manning (2015), section 3.2 (local-m)"


@dataclasses.dataclass(frozen=True)
class Config:
    """Local attention, monotonic.

    Attributes:
      name: The mechanism.
      half_width: D: how many slots the window reaches to each side (10 in the paper).
      score: The mechanism that scores inside the window, with its normalizer.
      num_heads: How many heads attend side by side, in the same window.
    """

    name: str = setting("local_m")
    half_width: int = setting(10, at_least=1)
    score: Any = setting({"name": "luong_general"}, named=find_config)
    num_heads: int = setting(1, at_least=1)

    def __post_init__(self) -> None:
        """Rejects what cannot score inside a window."""
        check_window_score(self.score, self.half_width)


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds local attention around its scoring mechanism."""
    inner = find_mechanism(config.score.name).build(config.score, query_dim, key_dim)

    def window(params: Params, query: Array, memory: Memory, positions: Array) -> Window:
        center = jnp.broadcast_to(positions.astype(sum_type(query)), query.shape[:-1])
        return window_around(center, config.half_width)

    return inner._replace(spec=dataclasses.replace(inner.spec, window=window))
