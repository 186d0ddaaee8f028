"""Maximum likelihood: the cross-entropy of the target tokens, with label smoothing."""

import dataclasses
import functools
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.configuration import setting
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.ops.custom_gradients import with_backward
from attention_jax.types import Batch, ModelOutput

PAPER = "Szegedy et al. (2016), section 7, for label smoothing"


@dataclasses.dataclass(frozen=True)
class Term:
    """Config and computation of the objective `nll`.

    Attributes:
      weight: Factor of this term in the loss.
      schedule: How the weight changes during training.
      label_smoothing: Probability eps that is taken from the target token and spread evenly.
      smoothing_over: Over which tokens: the whole `vocabulary`, eps/V each, the target included;
        or the `others`, eps/(V-1) each, only where something is spread.
      reduction: Divide the sum over tokens by the number of tokens (`per_token`, Transformer) or
        of sentences (`per_sentence`, Bahdanau and Luong); learning rates and clipping depend on
        it.
    """

    weight: float = setting(1.0, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    label_smoothing: float = setting(0.0, at_least=0.0, below=1.0)
    smoothing_over: str = setting("vocabulary", choices=("vocabulary", "others"))
    reduction: str = setting("per_token", choices=("per_token", "per_sentence"))
    needs_alignment: ClassVar[bool] = False
    needs_links: ClassVar[bool] = False
    needs_reverse: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Rejects a field that would change nothing."""
        if self.smoothing_over != "vocabulary" and not self.label_smoothing:
            raise ValueError(
                "smoothing_over: expected only beside label_smoothing above 0, found "
                f"{self.smoothing_over!r}"
            )

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of real target tokens, or of real sentences."""
        return token_count(batch) if self.reduction == "per_token" else sentence_count(batch)

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the cross-entropy summed over the real target tokens, in nats."""
        return cross_entropy(
            output.logits,
            jnp.asarray(batch["target"]),
            jnp.asarray(batch["target_mask"]),
            label_smoothing=self.label_smoothing,
            smoothing_over=self.smoothing_over,
        ).sum()


def cross_entropy(
    logits: Float[Array, "*B V"],
    targets: Int[Array, "*B"],
    mask: Bool[Array, "*B"],
    *,
    label_smoothing: float = 0.0,
    smoothing_over: str = "vocabulary",
) -> Float[Array, "*B"]:
    """Computes the cross-entropy of each token with its smoothed target distribution.

    loss = -sum_v q(v) log p(v), with p = softmax(logits) and, for the target y,
      q(v) = (1 - eps) [v = y] + eps / V                  (smoothing over the vocabulary)
      q(v) = (1 - eps) [v = y] + eps / (V - 1) [v != y]   (smoothing over the others)

    The backward pass computes p anew from the logits and their log-normaliser, so that no second
    array of the logits' size is kept. To profit from that, a readout should multiply in two
    dimensions, `(hidden.reshape(-1, D) @ weights).reshape(B, T, V)`.

    Args:
      logits: Unnormalised log-probabilities.
      targets: Ids of the target tokens.
      mask: False at padding, where loss and gradient are zero whatever the logits hold.
      label_smoothing: eps.
      smoothing_over: `vocabulary` or `others`.

    Returns:
      float32, in nats.

    Source: Szegedy et al. 2016, section 7, for smoothing over the vocabulary, as in Vaswani et
    al. 2017, section 5.4; the other form is that of tensor2tensor. OpenNMT leaves out padding, too.
    """
    size = logits.shape[-1]
    peak, floor = _smoothed_target(size, label_smoothing, smoothing_over)
    # In two dimensions XLA needs no transposed copies of the gradient for the readout's matmuls.
    parts = (functools.partial(part, peak, floor) for part in (_plain, _forward, _backward))
    flat = with_backward(*parts)(logits.reshape(-1, size), targets.ravel(), mask.ravel())
    return flat.reshape(targets.shape)


def token_count(batch: Batch) -> Float[Array, ""]:
    """Counts the real target tokens, EOS included."""
    return jnp.sum(batch["target_mask"], dtype=jnp.float32)


def sentence_count(batch: Batch) -> Float[Array, ""]:
    """Counts the rows that hold a target; the rest only fill the batch."""
    return jnp.sum(jnp.any(batch["target_mask"], axis=-1), dtype=jnp.float32)


def _smoothed_target(size: int, eps: float, over: str) -> tuple[float, float]:
    """Returns (peak, floor) such that q(v) = peak [v = y] + floor."""
    if over == "vocabulary":
        return 1.0 - eps, eps / size
    floor = eps / (size - 1)
    return 1.0 - eps - floor, floor


def _plain(peak: float, floor: float, logits: Array, targets: Array, mask: Array) -> Array:
    logits = jnp.where(mask[..., None], logits, jnp.zeros((), logits.dtype))
    return _forward(peak, floor, logits, targets, mask)[0]


def _forward(
    peak: float, floor: float, logits: Array, targets: Array, mask: Array
) -> tuple[Array, Array]:
    scores = logits.astype(jnp.float32)
    log_normalizer = jax.nn.logsumexp(scores, axis=-1)
    expected = peak * jnp.take_along_axis(scores, targets[..., None], axis=-1)[..., 0]
    if floor:  # 0 * inf would turn a forbidden token into NaN
        expected += floor * scores.sum(axis=-1)
    loss = jnp.where(mask, log_normalizer - expected, 0.0)
    return loss, log_normalizer


def _backward(
    peak: float, floor: float, arguments: tuple, log_normalizer: Array, cotangent: Array
) -> tuple[Array, None, None]:
    logits, targets, mask = arguments
    probabilities = jnp.exp(logits.astype(jnp.float32) - log_normalizer[..., None])
    is_target = targets[..., None] == jnp.arange(logits.shape[-1])
    gradient = (probabilities - peak * is_target - floor) * cotangent[..., None]
    return jnp.where(mask[..., None], gradient, 0.0).astype(logits.dtype), None, None
