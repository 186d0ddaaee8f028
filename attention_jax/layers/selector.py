"""Selectors: which words of a document are read; the interface that they share, and their lookup.

A selector file in `layers/selectors` holds `PAPER`, a frozen dataclass `Config` and
`build(config, depth) -> Selector`. In training selections are drawn with the call's key. Otherwise
they are decided: of Bernoulli variables, as many words are selected as are expected to be, the most
probable ones, for REINFORCE leaves many words with a probability below a half, of which a threshold
would select none.
"""

import abc
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from attention_jax.discovery import Parts
from attention_jax.ops.rationales import Selection, selection_changes
from attention_jax.types import Array, Call, Params

SELECTORS = Parts("attention_jax.layers.selectors", having=("name",))


class Selector(abc.ABC):
    """Selector: pure functions from annotations of words to a selection."""

    @property
    @abc.abstractmethod
    def parameters(self) -> Mapping[str, Any]:
        """The tree of its parameters."""

    @abc.abstractmethod
    def select(
        self,
        params: Params,
        annotations: Float[Array, "B N L D"],
        mask: Bool[Array, "B N L"],
        call: Call = Call(),
    ) -> Selection:
        """Selects words of documents."""


def summed(
    selected: Float[Array, "B N L"],
    share: Float[Array, "B N L"],
    log_prob: Float[Array, "B N L"],
    mask: Bool[Array, "B N L"],
) -> Selection:
    """Sums what is known of each word over the words of a document, in their order.

    Args:
      selected: What each word is read by.
      share: Whether it is selected, or how probably.
      log_prob: Of its selection, given those before it.
      mask: Where there are words.
    """
    rows, size = mask.shape[0], mask.shape[1] * mask.shape[2]

    def flat(values: Array) -> Array:
        return jnp.where(mask, values, jnp.zeros_like(values)).reshape(rows, size)

    share, words = flat(share), mask.reshape(rows, size)
    return Selection(
        jnp.where(mask, selected, 0.0), share.sum(-1), selection_changes(share, words),
        flat(log_prob).sum(-1), words.sum(-1),
    )  # fmt: skip


def drawn(logits: Array, uniform: Array) -> tuple[Array, Array]:
    """Draws Bernoulli selections; returns them, without derivative, and their log p."""
    chosen = uniform < jax.nn.sigmoid(logits)
    return chosen.astype(logits.dtype), log_probability(logits, chosen)


def log_probability(logits: Array, chosen: Array) -> Array:
    """Bernoulli log-likelihood: log p(1) = log sigmoid(x), log p(0) = log sigmoid(-x)."""
    return jax.nn.log_sigmoid(jnp.where(chosen, logits, -logits))


def most_probable(
    logits: Float[Array, "B N L"], mask: Bool[Array, "B N L"]
) -> tuple[Float[Array, "B N L"], Float[Array, "B N L"]]:
    """Decides Bernoulli selections: of each document the k most probable words.

      k = round(sum_t p[t])

    Where every probability is 0 or 1 it is what would be drawn, and of equal ones the first.

    Returns:
      The selections, and their log p.
    """
    probability = jnp.where(mask, jax.nn.sigmoid(logits), 0.0).reshape(len(logits), -1)
    number = jnp.round(probability.sum(-1))
    is_word = mask.reshape(probability.shape)
    order = jnp.argsort(jnp.where(is_word, -probability, jnp.inf), axis=-1)
    rank = jnp.argsort(order, axis=-1)
    chosen = (rank < number[:, None]).reshape(mask.shape)
    return chosen.astype(logits.dtype), log_probability(logits, chosen)
