"""Attention normalizers, softmax, sparsemax and entmax: from scores to weights.

The functions on arrays (`masked_softmax`, `sparsemax`, `entmax15`) give rows that sum to one over
the slots that the mask allows, zeros elsewhere, and all zeros with finite gradients where the
mask allows nothing. They compute in float32, or float64 where scores are. `softmax_normalizer` and
its siblings adapt them to the signature that `attend` calls; `gaussian_window` wraps one of them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attention_jax.ops.custom_gradients import with_backward
from attention_jax.ops.summation import upcast
from attention_jax.types import Call, Memory, Params, State

LOWEST = float(np.finfo(np.float32).min)  # below what is allowed, finite lest differences be NaN
_FAR_BELOW = -1e9  # of the best score, where sparse weights have long been zero


@runtime_checkable
class Normalizer(Protocol):
    """What turns scores into weights inside `attend`."""

    def __call__(
        self,
        params: Params,
        scores: Array,
        mask: Array,
        query: Array,
        memory: Memory,
        state: State,
        *,
        positions: Array,
        call: Call,
    ) -> tuple[Array, Mapping[str, Array]]:
        """Returns (weights, aux); `mask` has the shape of `scores`.

        Where something else than the weights is read, such as a sample, that is `aux["read"]`.
        """
        ...


def masked_softmax(
    scores: Float[Array, "*B S"], mask: Bool[Array, "*#B S"]
) -> Float[Array, "*B S"]:
    """Softmax, masked: normalises over the slots that the mask allows.

    weights[s] = exp(scores[s]) / sum_r exp(scores[r])

    Where masked, scores may be infinite or NaN. Weights are float32, or float64.
    """
    safe = jnp.where(mask, upcast(scores), LOWEST)
    # Cancels out of the quotient, and so do its gradients: they need not be computed.
    peak = jax.lax.stop_gradient(safe.max(axis=-1, keepdims=True, initial=LOWEST))
    exponentials = jnp.where(mask, jnp.exp(safe - peak), 0.0)
    total = exponentials.sum(axis=-1, keepdims=True)
    # A row without an allowed slot: zeros, and 0 / 1 in place of 0 / 0, whose gradient is NaN.
    return exponentials / jnp.where(total > 0.0, total, 1.0)


def sparsemax(scores: Float[Array, "*B S"], mask: Bool[Array, "*#B S"]) -> Float[Array, "*B S"]:
    """Sparsemax: normalises by the Euclidean projection onto the simplex, which has exact zeros.

    weights = max(scores - tau, 0), with tau such that they sum to one

    Where masked, scores may be infinite or NaN. Weights are float32, or float64.

    Source:
      Martins and Astudillo (2016), algorithm 1 and eq. 14 for the gradient.
    """
    return _normalize_lifted(_sparsemax, scores, mask)


def entmax15(scores: Float[Array, "*B S"], mask: Bool[Array, "*#B S"]) -> Float[Array, "*B S"]:
    """1.5-entmax: normalises to weights between softmax (dense) and sparsemax (sparse).

    weights = max(scores / 2 - tau, 0)^2, with tau such that they sum to one

    Where masked, scores may be infinite or NaN. Weights are float32, or float64.

    Source:
      Peters, Niculae and Martins (2019), section 3.2 and algorithm 2.
    """
    return _normalize_lifted(_entmax15, scores, mask)


def _normalize_lifted(function: Callable[[Array], Array], scores: Array, mask: Array) -> Array:
    """Masks by a finite value, and lifts the best score to zero lest float32 lose its digits."""
    if scores.shape[-1] == 0:
        return upcast(scores)
    # A slot at minus infinity has no weight; as a finite score it would take part in the sort.
    mask = mask & (scores != -jnp.inf)
    safe = jnp.where(mask, upcast(scores), LOWEST)
    peak = jax.lax.stop_gradient(safe.max(axis=-1, keepdims=True))
    lifted = jnp.where(mask, jnp.maximum(safe - peak, _FAR_BELOW), _FAR_BELOW)
    return jnp.where(mask, function(lifted), 0.0)


def _descending(scores: Array) -> Array:
    return jnp.flip(jnp.sort(scores, axis=-1), axis=-1)


@jax.custom_jvp
def _sparsemax(scores: Array) -> Array:
    ordered = _descending(scores)
    ranks = jnp.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
    sums = jnp.cumsum(ordered, axis=-1)
    # How many slots have a weight: the largest k with 1 + k z_k > z_1 + ... + z_k.
    size = jnp.sum(1.0 + ranks * ordered > sums, axis=-1, keepdims=True)
    support_sum = jnp.take_along_axis(sums, size - 1, axis=-1)
    return jnp.maximum(scores - (support_sum - 1.0) / size, 0.0)


@_sparsemax.defjvp
def _sparsemax_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    weights = _sparsemax(*primals)
    # The Jacobian is diag(s) - s s^T / |s|, with s the indicator of the support.
    support, (tangent,) = (weights > 0.0).astype(weights.dtype), tangents
    mean = (tangent * support).sum(-1, keepdims=True) / support.sum(-1, keepdims=True)
    return weights, support * (tangent - mean)


@jax.custom_jvp
def _entmax15_root(scores: Array) -> Array:
    """Returns the square roots of the weights, which have derivatives where weights are zero."""
    halves = scores / 2.0
    ordered = _descending(halves)
    ranks = jnp.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
    mean = jnp.cumsum(ordered, axis=-1) / ranks
    # Of the k best scores, k times their variance: tau_k solves sum (z - tau)^2 = 1 over them.
    spread = ranks * (jnp.cumsum(ordered**2, axis=-1) / ranks - mean**2)
    thresholds = mean - jnp.sqrt(jnp.maximum((1.0 - spread) / ranks, 0.0))
    size = jnp.sum(thresholds <= ordered, axis=-1, keepdims=True)
    threshold = jnp.take_along_axis(thresholds, size - 1, axis=-1)
    return jnp.maximum(halves - threshold, 0.0)


@_entmax15_root.defjvp
def _entmax15_root_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    root, (tangent,) = _entmax15_root(*primals), tangents
    # With r the roots, dr = (dz - r . dz / sum r) / 2 on the support.
    mean = (root * tangent).sum(-1, keepdims=True) / root.sum(-1, keepdims=True)
    return root, jnp.where(root > 0.0, (tangent - mean) / 2.0, 0.0)


def _entmax15_forward(scores: Array) -> tuple[Array, Array]:
    root = _entmax15_root(scores)
    return root**2, root


def _entmax15_backward(
    arguments: tuple[Array], root: Array, cotangent: Array
) -> tuple[Array]:
    mean = (root * cotangent).sum(-1, keepdims=True) / root.sum(-1, keepdims=True)
    return (root * (cotangent - mean),)


_entmax15 = with_backward(
    lambda scores: _entmax15_root(scores) ** 2, _entmax15_forward, _entmax15_backward
)


def _adapt(function: Callable[[Array, Array], Array]) -> Normalizer:
    def normalizer(
        params: Params,
        scores: Array,
        mask: Array,
        query: Array,
        memory: Memory,
        state: State,
        **_: Any,
    ) -> tuple[Array, Mapping[str, Array]]:
        return function(scores, mask), {}

    return normalizer


softmax_normalizer = _adapt(masked_softmax)
sparsemax_normalizer = _adapt(sparsemax)
entmax15_normalizer = _adapt(entmax15)

NORMALIZERS: Mapping[str, Normalizer] = {
    "softmax": softmax_normalizer,
    "sparsemax": sparsemax_normalizer,
    "entmax15": entmax15_normalizer,
}


def gaussian_window(base: Normalizer, deviation: float) -> Normalizer:
    """Gaussian window: multiplies the weights inside a window by a Gaussian around its centre.

    weights[s] = base(scores)[s] exp(-(s - center)^2 / (2 deviation^2))

    The product is not normalised again, so that a row sums to less than one; the centre learns
    through the Gaussian only.

    Args:
      base: Normalises the scores inside the window.
      deviation: Standard deviation in slots, half the window's half width in the paper.

    Returns:
      A normalizer for the memories that `attend` gathers: it reads `center` and `slots`.

    Source:
      Luong et al. (2015), section 3.2, eq. 10.
    """

    def normalizer(
        params: Params,
        scores: Array,
        mask: Array,
        query: Array,
        memory: Memory,
        state: State,
        **context: Any,
    ) -> tuple[Array, Mapping[str, Array]]:
        weights, aux = base(params, scores, mask, query, memory, state, **context)
        distance = memory.aux["slots"] - memory.aux["center"][..., None]  # *B T W
        factor = jnp.exp(-0.5 * (distance / deviation) ** 2)
        beside = weights.shape[-1] - factor.shape[-1]  # slots that have no place, such as a sink
        widths = [(0, 0)] * (factor.ndim - 1) + [(0, beside)]
        factor = jnp.pad(factor, widths, constant_values=1.0)
        return weights * factor[..., None, :], aux  # *B T W -> *B T 1 W

    return normalizer
