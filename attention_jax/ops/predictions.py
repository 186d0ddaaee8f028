"""Predictions: the distribution of the next token, as losses, metrics and searches ask for it.

A distribution is over the V ids of the vocabulary and X further ones, words of a row's own source
that the vocabulary lacks; X is static, and 0 where nothing is copied.
"""

import abc
import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.ops.cross_entropy import cross_entropy, smoothed_target
from attention_jax.ops.largest import log_normalizer
from attention_jax.ops.summation import upcast
from attention_jax.types import Leaf


class Predictions(abc.ABC):
    """Predictions: distributions p(v) of the next token, `*B`; a pytree of arrays.

    A subclass gives `log_probs`, and whatever it can compute better than from these.
    """

    @abc.abstractmethod
    def log_probs(self) -> Float[Array, "*B V"]:
        """Returns log p(v) of all V + X ids, float32; minus infinity where one is impossible."""

    @property
    def size(self) -> int:
        """How many ids there are, V + X."""
        # By shape alone: the distribution itself may be large, and is not computed for this.
        return jax.eval_shape(self.log_probs).shape[-1]

    def log_prob(self, targets: Int[Array, "*B"]) -> Float[Array, "*B"]:
        """Log-likelihood: returns log p(target), float32."""
        return jnp.take_along_axis(self.log_probs(), targets[..., None], axis=-1)[..., 0]

    def scores(self) -> tuple[Float[Array, "*B V"], Float[Array, "*B"]]:
        """Returns (scores, log-normalizer): log p(v) = scores[v] - log-normalizer.

        Searches rank by the scores and normalise only what they keep.
        """
        log_probs = self.log_probs()
        # Normalised already; a subclass may leave the division to the end.
        return log_probs, jnp.zeros(log_probs.shape[:-1])

    def left_out(self) -> Bool[Array, "*#B V"] | None:
        """Tells which ids a search leaves out, however probable: those that would say nothing.

        None where it leaves out none.
        """
        return None

    def cross_entropy(
        self,
        targets: Int[Array, "*B"],
        mask: Bool[Array, "*B"],
        *,
        label_smoothing: float = 0.0,
        smoothing_over: str = "vocabulary",
    ) -> Float[Array, "*B"]:
        """Cross-entropy with the smoothed target distribution q, in nats; zero where not `mask`.

        loss = -sum_v q(v) log p(v); what is spread falls on the possible ids only

        Args:
          targets: Ids of the target tokens.
          mask: False at padding.
          label_smoothing: eps; see `ops.cross_entropy.smoothed_target`.
          smoothing_over: As there.
        """
        peak, floor = smoothed_target(self.size, label_smoothing, smoothing_over)
        # The target has `floor` like any other id, and `peak` on top of it.
        loss = -peak * jnp.where(mask, self.log_prob(targets), 0.0)
        if floor:  # nothing is spread, and log p of other ids not needed
            log_probs = self.log_probs()
            # An impossible id would make the smoothed loss infinite.
            possible = mask[..., None] & jnp.isfinite(log_probs)
            loss -= floor * jnp.where(possible, log_probs, 0.0).sum(axis=-1)
        return loss

    def is_best(self, targets: Int[Array, "*B"]) -> Bool[Array, "*B"]:
        """Accuracy: tells where no token is more probable than the target."""
        log_probs = self.log_probs()
        target = jnp.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]
        return target >= log_probs.max(axis=-1)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SoftmaxPredictions(Predictions):
    """Softmax over the vocabulary: p(v) = exp(logits[v]) / sum_w exp(logits[w]).

    Attributes:
      logits: `*B V`, float32.
    """

    logits: Leaf

    @property
    def size(self) -> int:
        """How many ids there are."""
        return self.logits.shape[-1]

    def log_probs(self) -> Float[Array, "*B V"]:
        """Returns log p(v) of all ids."""
        return jax.nn.log_softmax(upcast(self.logits), axis=-1)

    def log_prob(self, targets: Int[Array, "*B"]) -> Float[Array, "*B"]:
        """Log-likelihood: returns log p(target), without the other log-probabilities."""
        return -cross_entropy(self.logits, targets, jnp.ones(targets.shape, bool))

    def scores(self) -> tuple[Float[Array, "*B V"], Float[Array, "*B"]]:
        """Returns the logits and the logarithm of the sum of their exponentials."""
        logits = upcast(self.logits)
        return logits, log_normalizer(logits)

    def cross_entropy(
        self,
        targets: Int[Array, "*B"],
        mask: Bool[Array, "*B"],
        *,
        label_smoothing: float = 0.0,
        smoothing_over: str = "vocabulary",
    ) -> Float[Array, "*B"]:
        """Fused cross-entropy; see `ops.cross_entropy.cross_entropy`."""
        return cross_entropy(
            self.logits, targets, mask,
            label_smoothing=label_smoothing, smoothing_over=smoothing_over,
        )  # fmt: skip

    def is_best(self, targets: Int[Array, "*B"]) -> Bool[Array, "*B"]:
        """Accuracy: tells where no logit is larger than the target's."""
        # In the loss's two dimensions: its maximum is then computed once. An argmax takes long.
        rows = self.logits.reshape(-1, self.size)
        target = jnp.take_along_axis(rows, targets.reshape(-1, 1), axis=-1)[..., 0]
        return (target >= rows.max(axis=-1)).reshape(targets.shape)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LimitedPredictions(Predictions):
    """Predictions of which a search leaves out one more id, such as a STEP that leads nowhere.

    Probabilities stay what they are.

    Attributes:
      predictions: The distributions.
      idle: `*B`, the id; PAD, which no search writes, where there is none.
    """

    predictions: Predictions
    idle: Leaf

    @property
    def size(self) -> int:
        """How many ids there are, V + X."""
        return self.predictions.size

    def log_probs(self) -> Float[Array, "*B V"]:
        """Returns log p(v) of all ids."""
        return self.predictions.log_probs()

    def scores(self) -> tuple[Float[Array, "*B V"], Float[Array, "*B"]]:
        """Returns those of the distributions."""
        return self.predictions.scores()

    def left_out(self) -> Bool[Array, "*B V"]:
        """Tells which ids a search leaves out."""
        is_idle = jnp.arange(self.size) == self.idle[..., None]
        others = self.predictions.left_out()
        return is_idle if others is None else is_idle | others
