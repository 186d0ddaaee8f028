"""Shape of attention under teacher forcing: how flat it is, how fixed, and how diagonal."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.objectives.metrics import Pairs
from attention_jax.objectives.real_attention import real_slots, real_weights
from attention_jax.ops.summation import upcast
from attention_jax.types import Batch, ModelOutput

_FEWEST = 4  # target tokens and slots of a sentence in which one slot for all of them is odd


def attention_shape(output: ModelOutput, batch: Batch) -> Pairs:
    """Attention shape: measures entropy, the share of one slot, and the share of the diagonal.

      p[t, s] = weights[t, s] / sum_s weights[t, s]

    over real target tokens that attend to anything, in sentences of more than one slot.

    Args:
      output: Of a model that attends to source positions, weights `B T S`.
      batch: The batch.

    Returns:
      (sum, count) pairs: `attention/entropy`, the mean over tokens of -sum_s p log p / log S, 1
      where all slots have equal weights; `attention/one_slot`, the mean over sentences of four
      tokens and slots or more of max_s mean_t p[t, s], 1 where all tokens attend to the same slot;
      `attention/diagonal`, the mean of p[t, t] over tokens t < S.
    """
    weights = upcast(real_weights(output, batch))
    slots = real_slots(output, batch).sum(-1)[:, None]  # B 1
    total = weights.sum(-1)  # B T
    is_measured = (total > 0) & (slots > 1)
    shares = weights / jnp.where(total > 0, total, 1.0)[..., None]
    logarithms = jnp.log(jnp.where(shares > 0, shares, 1.0))
    entropy = -(shares * logarithms).sum(-1) / jnp.log(jnp.maximum(slots, 2))

    tokens = is_measured.sum(-1)
    received = jnp.where(is_measured[..., None], shares, 0.0).sum(-2)  # over T: B S
    largest = received.max(-1, initial=0.0) / jnp.maximum(tokens, 1)
    is_long = (tokens >= _FEWEST) & (slots[:, 0] >= _FEWEST)

    own = jnp.arange(shares.shape[1])  # of each target token: the slot of the same number
    has_own = is_measured & (own < slots)
    return {
        "attention/entropy": _mean(entropy, is_measured),
        "attention/one_slot": _mean(largest, is_long),
        "attention/diagonal": _mean(_diagonal(shares), has_own),
    }


def _diagonal(shares: Float[Array, "B T S"]) -> Float[Array, "B T"]:
    """Returns p[t, t], zero for tokens of which there is no such slot."""
    places = jnp.arange(shares.shape[-2])[:, None] == jnp.arange(shares.shape[-1])
    return jnp.where(places, shares, 0.0).sum(-1)


def _mean(values: Array, where: Array) -> tuple[Array, Array]:
    return jnp.where(where, values, 0.0).sum(), where.sum(dtype=float)
