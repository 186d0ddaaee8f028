"""Luong's local attention with predictive alignment: a window that the decoder places.

  center[t] = S sig(v_p . tanh(query[t] W_p))
  weights[t, s] = softmax over the window (scores)[t, s] exp(-(s - center)^2 / (2 (D/2)^2))

Slots are counted from the first one, at whatever position that stands.

The choice of the window carries no gradient; the centre learns through the Gaussian. The weights
are not normalised again and sum to less than one.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import (
    MechanismParts,
    check_window_score,
    find_config,
    find_mechanism,
)
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.normalizers import gaussian_window
from attention_jax.ops.positions import first_position
from attention_jax.ops.summation import sum_type
from attention_jax.ops.windows import Window, window_around
from attention_jax.types import Array, Memory, Params

PAPER = "Luong, Pham and Manning (2015), section 3.2, eq. 9 and 10 (local-p)"


@dataclasses.dataclass(frozen=True)
class Config:
    """Local attention, predictive.

    Attributes:
      name: The mechanism.
      half_width: D: how many slots the window reaches to each side (10 in the paper).
      prediction_dim: Depth of the hidden layer that predicts the centre.
      variant: `paper` (center = S sig(.), slots with |s - center| <= D) or `code`, the authors'
        program (center = (S - 1) sig(.), so that it stays inside; slots floor(center) +- D).
      score: The mechanism that scores inside the window, with its normalizer.
      num_heads: How many heads attend side by side, each in a window of its own.
    """

    name: str = setting("local_p")
    half_width: int = setting(10, at_least=1)
    prediction_dim: int = setting(256, at_least=1)
    variant: str = setting("paper", choices=("paper", "code"))
    score: Any = setting({"name": "luong_general"}, named=find_config)
    num_heads: int = setting(1, at_least=1)

    def __post_init__(self) -> None:
        """Rejects what cannot score inside a window."""
        check_window_score(self.score, self.half_width)


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds local attention around its scoring mechanism."""
    inner = find_mechanism(config.score.name).build(config.score, query_dim, key_dim)
    depth = config.prediction_dim
    parameters = {
        "center_kernel": Parameter.of("attention_kernel", query=query_dim, attention=depth),
        "center_vector": Parameter.of("attention_vector", attention=depth),
        **inner.parameters,
    }
    is_code = config.variant == "code"

    def window(params: Params, query: Array, memory: Memory, positions: Array) -> Window:
        # In bfloat16 the possible centres of a long source lie several slots apart.
        in_full = functools.partial(jnp.matmul, preferred_element_type=sum_type(query))
        hidden = jnp.tanh(in_full(query, params["center_kernel"]))
        share = jax.nn.sigmoid(in_full(hidden, params["center_vector"]))
        length = memory.mask.sum(-1).astype(share.dtype)[..., None]
        span = jnp.maximum(length - 1.0, 0.0) if is_code else length
        center = first_position(memory)[..., None] + span * share
        return window_around(center, config.half_width, whole_slots=is_code)

    spec = dataclasses.replace(
        inner.spec,
        window=window,
        normalizer=gaussian_window(inner.spec.normalizer, config.half_width / 2.0),
    )
    return inner._replace(
        spec=spec, parameters=parameters, reads_length=True, places_window=True
    )
