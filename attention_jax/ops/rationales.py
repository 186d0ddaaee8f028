"""Selections of words: how many are selected, how often that changes, and HardKuma.

HardKuma stretches the Kumaraswamy distribution from (0, 1) to (l, r) = (-.1, 1.1) and cuts it off
at 0 and 1, both of which then have a probability of their own. Samples have a derivative.

  k = (1 - (1 - u)^(1/b))^(1/a);   s = l + (r - l) k;   h = min(max(s, 0), 1)
  P(k < x) = 1 - (1 - x^a)^b;   P(h = 0) = P(k < -l / (r - l))
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention_jax.types import Leaf

LOWER, UPPER = -0.1, 1.1
_LEAST = 1e-6  # how near to 0 and 1 what is drawn or given may come


class Selection(NamedTuple):
    """What a generator has selected of documents.

    Attributes:
      selected: `B N L`, from 0 to 1, what each word is read by; 0 at padding.
      count: `B`, how many words are selected, or are expected to be where that has a derivative.
      changes: `B`, how often that changes from word to word, or is expected to.
      log_prob: `B`, log p of the selection; 0 where the selection itself has a derivative.
      words: `B`, how many there are.
    """

    selected: Leaf
    count: Leaf
    changes: Leaf
    log_prob: Leaf
    words: Leaf


def selection_changes(
    selected: Float[Array, "B S"], mask: Bool[Array, "B S"]
) -> Float[Array, "B"]:
    """Coherence: counts how often the selection changes from one real word to the next.

      sum_t |z[t] - z[t-1]|

    For probabilities of independent selections it is the expected number,
    sum_t p[t] (1 - p[t-1]) + (1 - p[t]) p[t-1].

    Source:
      Lei, Barzilay and Jaakkola (2016), eq. 4; Bastings, Aziz and Titov (2019), section 4.2.
    """
    places = jnp.where(mask, jnp.arange(mask.shape[-1]), -1)
    latest = jax.lax.cummax(places, axis=places.ndim - 1)  # the last real word up to here
    before = jnp.pad(latest, ((0, 0), (1, 0)), constant_values=-1)[:, : mask.shape[-1]]
    last = jnp.take_along_axis(selected, jnp.maximum(before, 0), axis=-1)
    changed = selected * (1.0 - last) + (1.0 - selected) * last
    return jnp.where(mask & (before >= 0), changed, 0.0).sum(-1)


def _floored(a: Array, b: Array) -> tuple[Array, Array]:
    """Bounds a and b from below, so that 1 / a^2 and 1 / b^2 are numbers."""
    return jnp.maximum(a, _LEAST), jnp.maximum(b, _LEAST)


def hard_kuma_sample(
    a: Float[Array, "*B"], b: Float[Array, "*B"], uniform: Float[Array, "*B"]
) -> Float[Array, "*B"]:
    """Samples HardKuma(a, b), differentiably, from uniform numbers of (0, 1)."""
    uniform = jnp.clip(uniform, _LEAST, 1.0 - _LEAST)
    a, b = _floored(a, b)
    inner = jnp.clip(1.0 - (1.0 - uniform) ** (1.0 / b), _LEAST, 1.0 - _LEAST)
    return jnp.clip(LOWER + (UPPER - LOWER) * inner ** (1.0 / a), 0.0, 1.0)


def hard_kuma_probabilities(
    a: Float[Array, "*B"], b: Float[Array, "*B"]
) -> tuple[Float[Array, "*B"], Float[Array, "*B"]]:
    """Returns P(h = 0) and P(h = 1)."""
    a, b = _floored(a, b)

    def log_above(place: float) -> Array:
        return b * jnp.log(-jnp.expm1(a * math.log(place)))  # place^a may round to 1

    span = UPPER - LOWER
    return -jnp.expm1(log_above(-LOWER / span)), jnp.exp(log_above((1.0 - LOWER) / span))


def hard_kuma_decision(
    a: Float[Array, "*B"], b: Float[Array, "*B"]
) -> Float[Array, "*B"]:
    """Decides without drawing: 0, 1 or the mean of the stretched distribution, cut off.

    The first two where either is the most probable of 0, 1 and what lies between.
    """
    a, b = _floored(a, b)
    zero, one = hard_kuma_probabilities(a, b)
    between = 1.0 - zero - one
    log_mean = (
        jnp.log(b) + jax.scipy.special.gammaln(1.0 + 1.0 / a)
        + jax.scipy.special.gammaln(b) - jax.scipy.special.gammaln(1.0 + 1.0 / a + b)
    )  # fmt: skip
    mean = jnp.clip(LOWER + (UPPER - LOWER) * jnp.exp(log_mean), 0.0, 1.0)
    certain = jnp.where(one > zero, 1.0, 0.0)
    return jnp.where((between > zero) & (between > one), mean, certain)
