"""Selectors: which words of a document are read; the interface that they share, and their lookup.

A selector file in `layers/selectors` holds `PAPER`, a frozen dataclass `Config` and
`build(config, depth) -> Selector`. In training selections are drawn with the call's key; otherwise
the more probable one is taken, word by word.
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


def drawn(logits: Array, call: Call, uniform: Array | None = None) -> tuple[Array, Array]:
    """Draws Bernoulli selections, or decides; returns them, without derivative, and their log p."""
    if call.train:
        if uniform is None:
            uniform = jax.random.uniform(call.rng, logits.shape)
        chosen = uniform < jax.nn.sigmoid(logits)
    else:
        chosen = logits > 0
    # log p(1) = log sigmoid(x), log p(0) = log sigmoid(-x)
    log_prob = jax.nn.log_sigmoid(jnp.where(chosen, logits, -logits))
    return chosen.astype(logits.dtype), log_prob
