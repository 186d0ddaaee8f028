"""Luong's local attention with predictive alignment: a window that the decoder places.

  center[t] = S sig(v_p . tanh(query[t] W_p))
  weights[t, s] = softmax over the window (scores)[t, s] exp(-(s - center)^2 / (2 (D/2)^2))

Slots are counted from the first one, at whatever position that stands.

The choice of the window carries no gradient; the centre learns through the Gaussian. The weights
are not normalised again and sum to less than one.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.local_attention import LocalConfig, local_parts
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.normalizers import gaussian_window
from attention_jax.ops.positions import first_position
from attention_jax.ops.summation import accumulation_dtype
from attention_jax.ops.windows import Window, window_around
from attention_jax.types import Array, Memory, Params

PAPER = "Luong, Pham and Manning (2015), section 3.2, eq. 9 and 10 (local-p)"


@dataclasses.dataclass(frozen=True)
class Config(LocalConfig):
    """Local attention, predictive: each head places a window of its own.

    Further fields are those of `layers.local_attention.LocalConfig`.

    Attributes:
      prediction_dim: Depth of the hidden layer that predicts the centre.
      variant: `paper` (center = S sig(.), slots with |s - center| <= D) or `code`, the authors'
        program (center = (S - 1) sig(.), so that it stays inside; slots floor(center) +- D).
    """

    name: str = setting("local_p")
    prediction_dim: int = setting(256, at_least=1)
    variant: str = setting("paper", choices=("paper", "code"))


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds local attention around its scoring mechanism."""
    depth = config.prediction_dim
    parameters = {
        "center_kernel": Parameter.of("attention_kernel", query=query_dim, attention=depth),
        "center_vector": Parameter.of("attention_vector", attention=depth),
    }
    is_code = config.variant == "code"

    def place(params: Params, query: Array, memory: Memory, positions: Array) -> Window:
        # In bfloat16 the possible centres of a long source lie several slots apart.
        in_full = functools.partial(jnp.matmul, preferred_element_type=accumulation_dtype(query))
        hidden = jnp.tanh(in_full(query, params["center_kernel"]))  # *B T D
        share = jax.nn.sigmoid(in_full(hidden, params["center_vector"]))
        # S is the number of real slots: padding must not move a window.
        length = memory.mask.sum(-1).astype(share.dtype)[..., None]
        span = jnp.maximum(length - 1.0, 0.0) if is_code else length
        center = first_position(memory)[..., None] + span * share
        return window_around(center, config.half_width, whole_slots=is_code)

    parts = local_parts(config, query_dim, key_dim, place, is_own=True)
    normalizer = gaussian_window(parts.spec.normalizer, config.half_width / 2.0)
    return parts._replace(
        spec=dataclasses.replace(parts.spec, normalizer=normalizer),
        parameters={**parameters, **parts.parameters},
        traits=parts.traits._replace(reads_length=True),
    )
