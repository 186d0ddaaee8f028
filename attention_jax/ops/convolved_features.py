"""Convolved features: a pattern of neighbours scores each place, as a state wants it.

  F[t, s] = gate[t] * features[s] / ||gate[t] * features||
  score[t, s] = sum_w kernel[w] . F[t, s + w - (W - 1) // 2]

The norm is over all places and channels (Frobenius), so that scores of long sources are small.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.ops.summation import upcast

_TINY = 1e-12  # keeps the derivative of the norm finite where all features are zero


def gate_features(
    features: Float[Array, "*#B S C"], gate: Float[Array, "*B T C"]
) -> Float[Array, "*B T S C"]:
    """Gated features: scales channels by a gate, and the whole to length one.

    Args:
      features: Of each place, zero at padding.
      gate: Of each query.

    Source:
      Allamanis, Peng and Sutton (2016), section 3, attention_features.
    """
    return features[..., None, :, :] * _normalized(features, gate)[..., None, :]


def filter_features(
    features: Float[Array, "*B S C"], kernel: Float[Array, "W C"]
) -> Float[Array, "*B S"]:
    """Convolution to one channel, over as many places as there are, with zeros outside.

      filtered[s] = sum_w kernel[w] . features[s + w - (W - 1) // 2]
    """
    return shifted_products(features, kernel).sum(axis=-1)


def shifted_products(
    features: Float[Array, "*B S C"], kernel: Float[Array, "W C"]
) -> Float[Array, "*B S C"]:
    """Depthwise convolution: filters each channel by itself, with zeros outside.

      filtered[s, c] = sum_w kernel[w, c] features[s + w - (W - 1) // 2, c]
    """
    features, kernel = upcast(features), upcast(kernel)
    width, size = kernel.shape[0], features.shape[-2]
    before = (width - 1) // 2
    ends = [(0, 0)] * (features.ndim - 2) + [(before, width - 1 - before), (0, 0)]
    padded = jnp.pad(features, ends)
    # A sum of W shifted copies, which XLA fuses into one pass over the features.
    return sum(padded[..., w : w + size, :] * kernel[w] for w in range(width))


def score_features(
    features: Float[Array, "*#B S C"],
    filtered: Float[Array, "*#B S C"],
    gate: Float[Array, "*B T C"],
) -> Float[Array, "*B T S"]:
    """Convolutional scores: those of `filter_features` over `gate_features`, without making these.

    As a channel has the same gate at all places, gating and filtering may change places: what is
    filtered once for a source serves all queries.

    Args:
      features: Of each place, zero at padding.
      filtered: What `shifted_products` makes of them.
      gate: Of each query.
    """
    return _normalized(features, gate) @ filtered.mT


def _normalized(features: Array, gate: Array) -> Array:
    """Returns the gate divided by the norm of the gated features, `*B T C`."""
    gate, energy = upcast(gate), jnp.square(upcast(features)).sum(axis=-2)[..., None, :]  # *B 1 C
    norm = jnp.sqrt((jnp.square(gate) * energy).sum(axis=-1, keepdims=True) + _TINY)
    return gate / norm
