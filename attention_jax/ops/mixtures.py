"""Mixtures of a softmax over the vocabulary with what is pointed at: a few ids, by weight.

  p(v) = kept softmax(logits)[v] + sum_n weights[n] [ids[n] = v],    kept + sum_n weights[n] = 1

What is pointed at may be a word of the text, or what a lexicon says of one; where several are the
same id, their weights add up.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.ops.predictions import Predictions, SoftmaxPredictions
from attention_jax.ops.summation import upcast
from attention_jax.types import Leaf

_TINY = 1e-30  # below this, a sum of float32 numbers is not to be told from zero


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class MixturePredictions(Predictions):
    """Mixture of a softmax and of weighted ids.

    Attributes:
      logits: `*B V`, of the softmax.
      kept: `*B`, its share.
      weights: `*B N`, the rest; with `kept` they sum to one.
      ids: `*#B N`, what each weight is for.
    """

    logits: Leaf
    kept: Leaf
    weights: Leaf
    ids: Leaf

    @property
    def size(self) -> int:
        """How many ids there are."""
        return self.logits.shape[-1]

    def log_probs(self) -> Float[Array, "*B V"]:
        """Returns log p(v) of all ids."""
        log_probs = jax.nn.log_softmax(upcast(self.logits), axis=-1)
        pointed = scattered(self.weights, self.ids, self.size)
        return mixed_log_prob(log_probs, self.kept[..., None], pointed)

    def log_prob(self, targets: Int[Array, "*B"]) -> Float[Array, "*B"]:
        """Log-likelihood: returns log p(target), without the log-probabilities of other ids."""
        log_probs = SoftmaxPredictions(self.logits).log_prob(targets)
        return mixed_log_prob(log_probs, self.kept, self.pointed_at(targets))

    def pointed_at(self, targets: Int[Array, "*B"]) -> Float[Array, "*B"]:
        """Returns the sum of the weights of a target."""
        return jnp.where(self.ids == targets[..., None], self.weights, 0.0).sum(axis=-1)


def mixed_log_prob(
    log_probs: Float[Array, "*B"], kept: Float[Array, "*#B"], pointed: Float[Array, "*B"]
) -> Float[Array, "*B"]:
    """Mixture of two probabilities: computes log(kept exp(log_probs) + pointed).

    Finite, with finite derivatives, wherever one of the two is possible: also where the exponential
    is too small to be told from zero.
    """
    total = kept * jnp.exp(log_probs) + pointed
    is_tiny = total < _TINY
    # Where one branch is taken, the other's logarithm is of 1, for its derivative counts as well.
    is_kept = is_tiny & (kept > 0)
    alone = log_probs + jnp.log(jnp.where(is_kept, kept, 1.0))
    together = jnp.log(jnp.where(is_tiny, 1.0, total))
    return jnp.where(is_tiny, jnp.where(is_kept, alone, -jnp.inf), together)


def scattered(
    weights: Float[Array, "*B N"], ids: Int[Array, "*#B N"], size: int
) -> Float[Array, "*B {size}"]:
    """Sums weights by their ids.

      p[v] = sum_n weights[n] [ids[n] = v]

    Args:
      weights: Any.
      ids: What each is for; the same may stand there twice.
      size: V, how many ids there are.
    """
    *batch, number = weights.shape
    rows = math.prod(batch)
    ids = jnp.broadcast_to(ids, weights.shape).reshape(rows, number)
    zeros = jnp.zeros((rows, size), weights.dtype)
    sums = zeros.at[jnp.arange(rows)[:, None], ids].add(weights.reshape(rows, number))
    return sums.reshape(*batch, size)


def pointer_sentinel(
    scores: Float[Array, "*B N"], sentinel: Float[Array, "*B"], mask: Bool[Array, "*B N"]
) -> tuple[Float[Array, "*B N"], Float[Array, "*B"]]:
    """Pointer sentinel: shares one softmax between a window and a sentinel.

      [weights; kept] = softmax([scores; sentinel])

    Args:
      scores: Of each place of the window.
      sentinel: The score of pointing at none.
      mask: True at places that may be pointed at.

    Returns:
      (weights, kept): what each place gets, and what is left for the vocabulary; all of it where
      the mask allows no place.
    """
    scores = jnp.where(mask, upcast(scores), -jnp.inf)
    every = jnp.concatenate([scores, upcast(sentinel)[..., None]], axis=-1)  # *B N+1
    shares = jax.nn.softmax(every, axis=-1)
    return shares[..., :-1], shares[..., -1]
