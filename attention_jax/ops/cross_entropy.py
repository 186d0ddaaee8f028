"""Cross-entropy of logits with label smoothing, fused: no second array of their size is kept."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.ops.custom_gradients import with_backward
from attention_jax.ops.summation import upcast


def cross_entropy(
    logits: Float[Array, "*B V"],
    targets: Int[Array, "*B"],
    mask: Bool[Array, "*B"],
    *,
    label_smoothing: float = 0.0,
    smoothing_over: str = "vocabulary",
) -> Float[Array, "*B"]:
    """Cross-entropy: compares each token's logits with its smoothed target distribution.

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
      float32, or float64 where the logits are, in nats.

    Source: Szegedy et al. 2016, section 7, for smoothing over the vocabulary, as in Vaswani et
    al. 2017, section 5.4; the other form is that of tensor2tensor. OpenNMT leaves out padding, too.
    """
    size = logits.shape[-1]
    peak, floor = smoothed_target(size, label_smoothing, smoothing_over)
    # In two dimensions XLA needs no transposed copies of the gradient for the readout's matmuls.
    parts = (functools.partial(part, peak, floor) for part in (_plain, _forward, _backward))
    flat = with_backward(*parts)(logits.reshape(-1, size), targets.ravel(), mask.ravel())
    return flat.reshape(targets.shape)


def smoothed_target(size: int, eps: float, over: str) -> tuple[float, float]:
    """Label smoothing: returns (peak, floor) such that q(v) = peak [v = y] + floor.

    Args:
      size: How many ids share what is spread, V.
      eps: What is taken from the target.
      over: Spread over the whole `vocabulary`, the target included, or over the `others`.
    """
    if over == "vocabulary":
        return 1.0 - eps, eps / size
    floor = eps / (size - 1)
    return 1.0 - eps - floor, floor


def _plain(peak: float, floor: float, logits: Array, targets: Array, mask: Array) -> Array:
    # Before all else: a NaN that only the loss is cleared of comes back through the gradient.
    logits = jnp.where(mask[..., None], logits, jnp.zeros((), logits.dtype))
    return _forward(peak, floor, logits, targets, mask)[0]


def _forward(
    peak: float, floor: float, logits: Array, targets: Array, mask: Array
) -> tuple[Array, Array]:
    scores = upcast(logits)
    # -sum_v q(v) log p(v) = log Z - sum_v q(v) logits[v], as q adds up to one.
    log_normalizer = jax.nn.logsumexp(scores, axis=-1)
    expected = peak * jnp.take_along_axis(scores, targets[..., None], axis=-1)[..., 0]  # N V -> N
    if floor:  # 0 * inf would turn a forbidden token into NaN
        expected += floor * scores.sum(axis=-1)
    loss = jnp.where(mask, log_normalizer - expected, 0.0)
    return loss, log_normalizer


def _backward(
    peak: float, floor: float, arguments: tuple, log_normalizer: Array, cotangent: Array
) -> tuple[Array, None, None]:
    logits, targets, mask = arguments
    probabilities = jnp.exp(upcast(logits) - log_normalizer[..., None])
    is_target = targets[..., None] == jnp.arange(logits.shape[-1])  # N 1, V -> N V
    gradient = (probabilities - peak * is_target - floor) * cotangent[..., None]
    return jnp.where(mask[..., None], gradient, 0.0).astype(logits.dtype), None, None
