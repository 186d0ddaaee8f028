"""Monotonic alignment: queries read slots in order, each from where the one before it stopped.

A slot that is read stops the query with a probability of its own. The alignment is the distribution
of where a query stops; a row sums to less than one where it may stop nowhere. Nothing is divided,
and no logarithm is taken of a probability, so that zero and one are as good as any others. Masked
slots stop nobody. The functions on arrays take slots in the order in which they are read.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention_jax.ops.normalizers import LOWEST, Normalizer
from attention_jax.ops.positions import in_order, slot_order
from attention_jax.ops.summation import upcast
from attention_jax.types import Call, Memory, Params, State

# What is carried from query to query, and where the normalizer leaves it: where reading goes on.
PREVIOUS, ALIGNMENT = "previous_alignment", "alignment"

# From scores to whether each slot stops a query, for good.
Decide = Callable[[Array], Array]
# (params, alignment, mask, query, memory, positions) -> weights, all of slots in reading order but
# for the memory.
Weigh = Callable[[Params, Array, Array, Array, Memory, Array], Array]

_NOISE_KEY = 1  # apart from that of dropped weights


def linear_recurrence(
    factors: Float[Array, "*B S"], terms: Float[Array, "*B S"], *, reverse: bool = False
) -> Float[Array, "*B S"]:
    """Solves a linear recurrence of first order along the last axis, in a logarithm of its length.

      y[j] = factors[j] y[j-1] + terms[j],   y[-1] = 0

    Args:
      factors: What the value before is multiplied by.
      terms: What is added.
      reverse: Whether it runs from the last slot to the first, y[j] = factors[j] y[j+1] + terms[j].

    Returns:
      y.
    """

    def join(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
        (factor, term), (next_factor, next_term) = left, right
        return next_factor * factor, next_factor * term + next_term

    axis = terms.ndim - 1
    if isinstance(terms.shape[axis], int):
        return jax.lax.associative_scan(join, (factors, terms), reverse=reverse, axis=axis)[1]

    def step(value: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        value = here[0] * value + here[1]
        return value, value

    # How often to halve a length is not known where the length is not: an export for any size.
    by_slot = tuple(jnp.moveaxis(part, axis, 0) for part in (factors, terms))
    _, values = jax.lax.scan(step, jnp.zeros_like(by_slot[1][0]), by_slot, reverse=reverse)
    return jnp.moveaxis(values, 0, axis)


def expected_alignment(
    stop: Float[Array, "*B S"], previous: Float[Array, "*#B S"]
) -> Float[Array, "*B S"]:
    """Returns the expected monotonic alignment: how probable it is that a query stops at each slot.

      q[j] = (1 - stop[j-1]) q[j-1] + previous[j],   q[-1] = 0
      alignment[j] = stop[j] q[j]

    q[j] is how probable it is that slot j is read at all.

    Args:
      stop: How probable it is that a slot which is read stops the query; zero at padding.
      previous: The alignment of the query before; all at the first slot before the first query.

    Returns:
      A distribution, of which what stops nowhere is missing.

    Source:
      Raffel et al. (2017), eq. 13 and 14.
    Deviations:
      None in the numbers. The paper computes it by a quotient of cumulative products, which fails
      where one of them is zero; its authors' program clips them.
    """
    goes_on = 1.0 - jnp.pad(stop, _beside(stop, before=1))[..., :-1]
    return stop * linear_recurrence(goes_on, jnp.broadcast_to(previous, stop.shape))


def hard_alignment(
    fires: Bool[Array, "*B S"], previous: Float[Array, "*#B S"]
) -> Float[Array, "*B S"]:
    """Returns where a query stops: at the first slot that fires, from the previous stop on.

    Args:
      fires: Whether a slot which is read stops the query; False at padding.
      previous: One at the slot where the last query that stopped did, zero elsewhere.

    Returns:
      One at that slot and zero elsewhere; zeros where nothing fires.

    Source:
      Raffel et al. (2017), section 2.2 and algorithm 1.
    Deviations:
      None in the numbers. The paper scores slots one after the other until one fires, S + T of them
      for an output of T; here each query has the scores of all S slots, as arrays need it.
    """
    found = fires & (jnp.cumsum(previous, axis=-1) > 0.5)
    is_first = jnp.cumsum(found, axis=-1) == 1
    return (found & is_first).astype(previous.dtype)


def chunk_attention(
    alignment: Float[Array, "*B S"],
    energies: Float[Array, "*#B S"],
    mask: Bool[Array, "*#B S"],
    window: int | None,
) -> Float[Array, "*B S"]:
    """Returns the expected softmax over the last slots before the stop, that slot included.

      weights[j] = sum_{k=j}^{j+w-1} alignment[k] exp(u[j]) / sum_{l=k-w+1}^{k} exp(u[l])

    Every exponential is of what is at most zero, so that it holds for energies of any size.

    Args:
      alignment: How probable it is that the query stops at each slot.
      energies: u, by which the slots of a chunk are compared; any floats, also infinite or NaN
        where masked.
      mask: True where a slot may be attended to.
      window: w, how many slots a chunk has; None for all up to the stop.

    Returns:
      Weights whose sum is that of the alignment.

    Source:
      Chiu and Raffel (2018), "Monotonic chunkwise attention", the expected output in training;
      Arivazhagan et al. (2019), "Monotonic infinite lookback attention", without a window.
    """
    energies = upcast(energies)
    allowed = jnp.broadcast_to(mask & (energies != -jnp.inf), alignment.shape)
    safe = jnp.where(allowed, energies, LOWEST)
    weigh = _all_before if window is None else _windows(window)
    return jnp.where(allowed, weigh(alignment, safe), 0.0)


def _all_before(alignment: Array, energies: Array) -> Array:
    """Weighs chunks that begin at the first slot.

      L[j] = log sum_{l<=j} exp(energies[l])
      r[j] = sum_{k>=j} alignment[k] exp(L[j] - L[k]) = alignment[j] + exp(L[j] - L[j+1]) r[j+1]
      weights[j] = exp(energies[j] - L[j]) r[j]
    """
    totals = jax.lax.cumlogsumexp(energies, axis=energies.ndim - 1)
    following = jnp.pad(totals, _beside(totals, after=1))[..., 1:]
    is_last = jnp.arange(totals.shape[-1]) == totals.shape[-1] - 1
    shares = jnp.where(is_last, 0.0, jnp.exp(jnp.where(is_last, 0.0, totals - following)))
    return jnp.exp(energies - totals) * linear_recurrence(shares, alignment, reverse=True)


def _windows(window: int) -> Callable[[Array, Array], Array]:
    """Returns what weighs chunks of so many slots, with as many shifted copies of all."""

    def weigh(alignment: Array, energies: Array) -> Array:
        size = energies.shape[-1]

        def from_before(row: Array, places: int) -> Array:
            widths = _beside(row, before=places)
            return jnp.pad(row, widths, constant_values=LOWEST)[..., :size]

        def from_after(row: Array, places: int, beyond: float) -> Array:
            widths = _beside(row, after=places)
            return jnp.pad(row, widths, constant_values=beyond)[..., places : places + size]

        inside = jnp.stack([from_before(energies, place) for place in range(window)])  # w *B S
        totals = jax.nn.logsumexp(inside, axis=0)
        weights = jnp.zeros_like(alignment)
        for place in range(window):  # of the chunk that ends so far behind
            shares = jnp.exp(energies - from_after(totals, place, -LOWEST))
            weights = weights + from_after(alignment, place, 0.0) * shares
        return weights

    return weigh


def _beside(row: Array, before: int = 0, after: int = 0) -> list[tuple[int, int]]:
    """Returns the widths with which the last axis is padded, and no other."""
    return [(0, 0)] * (row.ndim - 1) + [(before, after)]


def monotonic_normalizer(
    *, decide: Decide, noise: float, is_hard: bool, weigh: Weigh | None = None
) -> Normalizer:
    """Stops at slots instead of normalising over them: in expectation, or for good.

      stop = sigmoid(scores + noise N(0, 1)),   alignment = expected_alignment(stop, previous)

    The noise, which is drawn in training alone, teaches probabilities to keep away from the middle.
    A hard query that stops nowhere attends to nothing, and the next one goes on from where the
    last stop was; in expectation what has stopped nowhere is lost for later queries too.

    Args:
      decide: From scores to whether a slot fires, where decisions are hard.
      noise: Standard deviation of what is added to scores in training.
      is_hard: Whether decisions are hard once training is over.
      weigh: From alignment to weights; None where that is the alignment.

    Returns:
      A normalizer of one query at a time; it reads the tracked `previous_alignment`, and leaves
      what becomes that in `alignment`.

    Source:
      Raffel et al. (2017), eq. 11 to 14, on modified energies and on discreteness.
    """

    def normalizer(
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
        order = slot_order(memory)
        previous = in_order(state[PREVIOUS][..., None, :], order)
        scores, mask = in_order(scores, order), in_order(mask, order)
        if is_hard and not call.train:
            alignment = hard_alignment(mask & decide(scores), previous)
            has_stopped = alignment.any(axis=-1, keepdims=True)
            going_on = jnp.where(has_stopped, alignment, previous)
        else:
            stop = jax.nn.sigmoid(scores + _noise(noise, scores, call))
            alignment = going_on = expected_alignment(jnp.where(mask, stop, 0.0), previous)
        weights = alignment
        if weigh is not None:
            weights = weigh(params, alignment, mask, query, memory, positions)
            # The last slot that was read has some weight, which tells where reading stands.
            least = jnp.finfo(weights.dtype).tiny
            weights = jnp.where(alignment == 1.0, jnp.maximum(weights, least), weights)
        back = None if order is None else jnp.argsort(order, axis=-1)
        return in_order(weights, back), {ALIGNMENT: in_order(going_on, back)}

    return normalizer


def _noise(deviation: float, scores: Array, call: Call) -> Any:
    """Draws noise in training; raises `ValueError` if there is no key to draw it from."""
    if not call.train or deviation == 0.0:
        return 0.0
    if call.rng is None:
        raise ValueError("rng: expected a key, because noise is on, found None")
    rng = call.fold(_NOISE_KEY).rng
    return deviation * jax.random.normal(rng, scores.shape, scores.dtype)
