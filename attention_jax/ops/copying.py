"""Copying: a word is generated from the vocabulary or copied from the source, summed over both.

  p(w) = p_generate softmax(logits)[w] + sum_{s: word of s is w} p_copy[s]

A word that is in the source twice has both shares, and one that the vocabulary lacks has an id
beyond it, V + n for the n-th such word of its row. All of this is in log space, so that it is
finite wherever a word is possible, however unlikely one of the ways to write it is.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.ops.cross_entropy import cross_entropy
from attention_jax.ops.predictions import Predictions
from attention_jax.ops.summation import upcast
from attention_jax.types import Leaf, SpecialIds

# What attention has at least, of a slot that may be copied: a word that it has left out entirely
# then costs a training 23 nats and not infinitely many.
LEAST_ATTENTION = 1e-10


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CopyingPredictions(Predictions):
    """A mixture of generating and copying; what an axis of one stands for is broadcast.

    Attributes:
      logits: `*B V`, of the vocabulary.
      log_generate: `*B`, log p(generate).
      log_copy: `*B S`, log p(copy from slot s); minus infinity where a slot cannot be copied.
      words: `B 1 S`, the ids of the slots' words in the extended vocabulary.
      unknown: `B 1 X`, of which the shape alone counts: for how many words there are further ids.
    """

    logits: Leaf
    log_generate: Leaf
    log_copy: Leaf
    words: Leaf
    unknown: Leaf

    @property
    def size(self) -> int:
        """How many ids there are, V + X."""
        return self.logits.shape[-1] + self.unknown.shape[-1]

    def log_probs(self) -> Float[Array, "*B V"]:
        """Returns log p(w) of all V + X ids."""
        generated = self.log_generate[..., None] + jax.nn.log_softmax(upcast(self.logits), axis=-1)
        further = [(0, 0)] * (generated.ndim - 1) + [(0, self.unknown.shape[-1])]
        generated = jnp.pad(generated, further, constant_values=-jnp.inf)  # V -> V + X
        copied = _sum_by_word(self.log_copy, self._words(), self.size)
        return log_sum(jnp.stack([generated, copied], axis=-1))

    def log_prob(self, targets: Int[Array, "*B"]) -> Float[Array, "*B"]:
        """Returns log p(target), without the sums for other words."""
        generated, copied = self._ways(targets)
        return log_sum(jnp.concatenate([generated[..., None], copied], axis=-1))

    def left_out(self) -> Bool[Array, "*#B V"]:
        """Leaves UNK out where a source has words that the vocabulary lacks: each has an id."""
        has_own_words = (self.words >= self.logits.shape[-1]).any(axis=-1, keepdims=True)
        return has_own_words & (jnp.arange(self.size) == SpecialIds.UNK)

    def origins(
        self, targets: Int[Array, "*B"]
    ) -> tuple[Float[Array, "*B"], Float[Array, "*B S"]]:
        """Tells by which way known words were written.

        Returns:
          (p(target, generated), p(target, copied from slot s)); they add up to p(target).
        """
        generated, copied = self._ways(targets)
        return jnp.exp(generated), jnp.exp(copied)

    def _ways(self, targets: Array) -> tuple[Array, Array]:
        """Returns the logarithms of what `origins` returns."""
        number = self.logits.shape[-1]
        known = jnp.minimum(targets, number - 1)
        everywhere = jnp.ones(targets.shape, bool)
        generated = self.log_generate - cross_entropy(self.logits, known, everywhere)
        generated = jnp.where(targets < number, generated, -jnp.inf)
        is_target = self._words() == targets[..., None]  # *B S
        return generated, jnp.where(is_target, self.log_copy, -jnp.inf)

    def _words(self) -> Array:
        return jnp.broadcast_to(self.words, self.log_copy.shape)


def may_copy(words: Int[Array, "*B S"]) -> Array:
    """Tells which slots may be copied, by their ids: those of words, but not EOS, tags or UNK."""
    return words >= SpecialIds.COUNT


def pointer_mixture(
    logit: Float[Array, "*B"], weights: Float[Array, "*B S"], words: Int[Array, "*#B S"]
) -> tuple[Float[Array, "*B"], Float[Array, "*B S"]]:
    """Pointer-generator: divides probability between the vocabulary and what is attended to.

      p_copy[s] = (1 - p_gen) a[s] where slot s may be copied, p_generate = 1 - sum_s p_copy[s]

    where p_gen = sigmoid(logit). Attention to what cannot be copied, such as EOS, generates.

    Args:
      logit: Of p_gen.
      weights: Attention a.
      words: Ids of the slots' words in the extended vocabulary.

    Returns:
      (log p_generate, log p_copy), float32.

    Source:
      See, Liu and Manning (2017), eq. 8 and 9, where all that is attended to may be copied.
    """
    logit, copied = upcast(logit), jnp.where(may_copy(words), upcast(weights), 0.0)
    elsewhere = jnp.maximum(1 - copied.sum(-1), 0.0)
    log_pointing = jax.nn.log_sigmoid(-logit)
    either = [jax.nn.log_sigmoid(logit), log_pointing + jnp.log(elsewhere + LEAST_ATTENTION)]
    log_copy = log_pointing[..., None] + jnp.log(copied + LEAST_ATTENTION)
    log_copy = jnp.where(may_copy(words), log_copy, -jnp.inf)
    return log_sum(jnp.stack(either, axis=-1)), log_copy


def joint_softmax(
    logits: Float[Array, "*B V"], scores: Float[Array, "*B S"], words: Int[Array, "*#B S"]
) -> tuple[Float[Array, "*B"], Float[Array, "*B S"]]:
    """CopyNet: one softmax over the vocabulary's logits and the scores of slots that may be copied.

      Z = sum_v exp(logits[v]) + sum_s exp(scores[s])

    Args:
      logits: Of generating each word.
      scores: Of copying each slot.
      words: Ids of the slots' words in the extended vocabulary.

    Returns:
      (log p_generate, log p_copy), float32.

    Source:
      Gu, Lu, Li and Li (2016), eq. 4 to 6.
    """
    scores = jnp.where(may_copy(words), upcast(scores), -jnp.inf)
    generating = jax.nn.logsumexp(upcast(logits), axis=-1)
    both = jnp.concatenate([generating[..., None], scores], axis=-1)
    # The largest first, which is exact: the sum's logarithm is then small, and has all its digits.
    both = both - jax.lax.stop_gradient(both.max(axis=-1, keepdims=True))
    both = both - log_sum(both)[..., None]
    return both[..., 0], both[..., 1:]


def gated_copying(
    scores: Float[Array, "*B S"], gates: Float[Array, "*B S"], words: Int[Array, "*#B S"]
) -> tuple[Float[Array, "*B"], Float[Array, "*B S"]]:
    """Copy attention with a meta attention: copies as surely as the surest place says.

      lambda = sigmoid(max_s gates[s]);   p_copy[s] = lambda softmax(scores)[s]

    Places that may not be copied take no part; where none may be, all is generated.

    Args:
      scores: Of copying each slot.
      gates: Of copying at all, as each slot sees it.
      words: Ids of the slots' words in the extended vocabulary.

    Returns:
      (log p_generate, log p_copy), float32.

    Source:
      Allamanis, Peng and Sutton (2016), section 3.2.
    Deviations:
      The paper's softmax and maximum are over all places.
    """
    may = jnp.broadcast_to(may_copy(words), scores.shape)
    is_any = may.any(axis=-1)
    lowest = jnp.finfo(jnp.float32).min
    surest = jnp.where(may, upcast(gates), lowest).max(axis=-1, initial=lowest)
    surest = jnp.where(is_any, surest, 0.0)  # whose logarithms are not looked at
    generate = jnp.where(is_any, jax.nn.log_sigmoid(-surest), 0.0)
    scores = jnp.where(may, upcast(scores), -jnp.inf)
    shares = scores - jnp.where(is_any, log_sum(scores), 0.0)[..., None]
    copy = jax.nn.log_sigmoid(surest)[..., None] + shares
    return generate, jnp.where(may, copy, -jnp.inf)


def selective_weights(
    log_copy: Float[Array, "*B S"], words: Int[Array, "*#B S"], written: Int[Array, "*B"]
) -> Float[Array, "*B S"]:
    """Selective read: weighs the slots of the written word by how likely it was copied from there.

      rho[s] = p_copy[s] / sum_{r: word of r is y} p_copy[r] where the word of s is y, else 0

    Args:
      log_copy: log p_copy of the step that wrote it, up to a constant.
      words: Ids of the slots' words in the extended vocabulary.
      written: Ids y of the words.

    Returns:
      The weights; all zero where no slot holds the word.

    Source:
      Gu, Lu, Li and Li (2016), eq. 9.
    """
    is_written = (words == written[..., None]) & may_copy(words)
    among = jnp.where(is_written, upcast(log_copy), -jnp.inf)
    total = log_sum(among)[..., None]
    is_there = is_written & jnp.isfinite(total)
    # Selected before the exponential, too: the gradient of what is left out may not be NaN.
    difference = jnp.where(is_there, among - jnp.where(is_there, total, 0.0), 0.0)
    return jnp.where(is_there, jnp.exp(difference), 0.0)


def log_sum(values: Float[Array, "*B N"]) -> Float[Array, "*B"]:
    """Log-sum-exp over the last axis, minus infinity and without gradient where all values are."""
    top = jax.lax.stop_gradient(values.max(axis=-1, initial=-jnp.inf))
    shift = jnp.where(jnp.isfinite(top), top, 0.0)
    total = jnp.exp(values - shift[..., None]).sum(axis=-1)
    is_possible = total > 0
    return jnp.where(is_possible, jnp.log(jnp.where(is_possible, total, 1.0)) + shift, -jnp.inf)


def _sum_by_word(
    log_copy: Float[Array, "*B S"], words: Int[Array, "*B S"], size: int
) -> Float[Array, "*B V"]:
    """Adds up the shares of the slots of each word; minus infinity for words that no slot holds."""
    top = jax.lax.stop_gradient(log_copy.max(axis=-1, initial=-jnp.inf))
    shift = jnp.where(jnp.isfinite(top), top, 0.0)
    shares = jnp.exp(log_copy - shift[..., None])
    # Rows are counted, not left to be found: where a source is empty, there is nothing to count by.
    rows = math.prod(shares.shape[:-1]), shares.shape[-1]
    flat = shares.reshape(rows), words.reshape(rows)
    sums = jax.vmap(lambda share, ids: jnp.zeros(size, share.dtype).at[ids].add(share))(*flat)
    sums = sums.reshape(*log_copy.shape[:-1], size)
    is_held = sums > 0
    found = jnp.log(jnp.where(is_held, sums, 1.0)) + shift[..., None]
    return jnp.where(is_held, found, -jnp.inf)
