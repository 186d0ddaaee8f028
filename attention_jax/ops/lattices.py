"""Lattices of alignments: the forward algorithm, in log space, over target positions and slots.

A path goes through one slot a_t of the source for each target token y_t, from the first slot, a_0.
A transition says where the next token is written from, given where the last one was:

  prior[t, i]   = log p(a_t = i | y_1 .. y_{t-1})
                = log sum_k p(a_{t-1} = k | y_1 .. y_{t-1}) p(a_t = i | a_{t-1} = k)
  log_probs[t]  = log sum_i exp(prior[t, i] + emissions[t, i]) = log p(y_t | y_1 .. y_{t-1})
  reached[t, i] = prior[t, i] + emissions[t, i] - log_probs[t] = log p(a_t = i | y_1 .. y_t)

emissions[t, i] is log p(y_t | a_t = i, y_1 .. y_{t-1}). The log-probabilities of a row add up to
that of all paths together, log p(y | x), and what is carried is normalised at every step: a search
carries no more than that. Where nothing is possible, logarithms are `NEVER`, which is finite, lest
a difference be NaN. A score of `NEVER` or minus infinity forbids a slot, as the mask does.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention_jax.ops.summation import upcast

NEVER = -1e30  # the logarithm of no probability at all
Move = Callable[[Any, Array, Array], Array]


class Transition(NamedTuple):
    """How paths go on; masks are `*B S`, and so are slots in all that follows.

    Attributes:
      move: (what decides on moves, `*B S ...`, reached, mask) -> prior of the next token.
      is_parallel: Whether the prior depends on no slot before it.
      ends_at_last: Whether targets end at the last slot only: EOS has no other emissions.
    """

    move: Move
    is_parallel: bool = False
    ends_at_last: bool = False


class Gates(NamedTuple):
    """Whether a token is written at a slot that has been reached, or the slot is left.

    Attributes:
      emit: `*B S`, the log-probability of writing.
      skip: `*B S`, that of going on to the next slot.
    """

    emit: Array
    skip: Array


class Paths(NamedTuple):
    """The sum over all paths, token by token.

    Attributes:
      prior: `*B T S`, log p(a_t | y_1 .. y_{t-1}).
      log_probs: `*B T`, log p(y_t | y_1 .. y_{t-1}); zero at padding.
    """

    prior: Array
    log_probs: Array


def first_slot(mask: Bool[Array, "*B S"]) -> Float[Array, "*B S"]:
    """Returns where all paths begin, at the first real slot: its log-probability of one."""
    is_first = mask & (jnp.cumsum(mask, axis=-1) == 1)
    return jnp.where(is_first, 0.0, NEVER).astype(float)


def last_slot(mask: Bool[Array, "*B S"]) -> Bool[Array, "*B S"]:
    """Tells which real slot is the last one."""
    # The first real slot as seen from the end.
    return mask & (jnp.cumsum(mask[..., ::-1], axis=-1)[..., ::-1] == 1)


def move_anywhere(
    scores: Float[Array, "*B S"], reached: Float[Array, "*#B S"], mask: Bool[Array, "*#B S"]
) -> Float[Array, "*B S"]:
    """Independent alignments: the softmax of the scores, wherever the last token was written.

    Source:
      Wu, Shapiro and Cotterell (2018), on exact hard attention; as in IBM Model 1.
    """
    scores, mask = _possible(scores, mask)
    return jnp.where(mask, jax.nn.log_softmax(scores, axis=-1), NEVER)


def move_onwards(
    scores: Float[Array, "*B S"], reached: Float[Array, "*#B S"], mask: Bool[Array, "*#B S"]
) -> Float[Array, "*B S"]:
    """Monotonic alignments of order zero: the softmax of the scores from the last slot on.

    p(a_t = i | a_{t-1} = k) = exp(scores[i]) / sum_{j >= k} exp(scores[j]), i >= k

    Two cumulative sums make it linear in the number of slots.

    Source:
      Wu and Cotterell (2019), on monotonic attention of order zero.
    """
    scores, mask = _possible(scores, mask)
    axis = scores.ndim - 1
    # Divided by what lies ahead of k once and for all, for it does not depend on i.
    ahead = jax.lax.cumlogsumexp(scores, axis=axis, reverse=True)
    # The sum over k up to i.
    entered = jax.lax.cumlogsumexp(jnp.where(mask, reached - ahead, NEVER), axis=axis)
    return jnp.where(mask, scores + entered, NEVER)


def move_by_jumps(
    jumps: Float[Array, "*B S J"], reached: Float[Array, "*#B S"], mask: Bool[Array, "*#B S"]
) -> Float[Array, "*B S"]:
    """Monotonic alignments of order one: so many slots on, by what stands where a path is.

    p(a_t = k + d | a_{t-1} = k) = exp(jumps[k, d]) / sum of those that stay in the sentence

    Args:
      jumps: Scores of jumping 0, 1 .. J - 1 slots on from each slot.
      reached: Where paths are.
      mask: The slots of the sentence.

    Source:
      Wu and Cotterell (2019), on monotonic attention of order one. Their window reaches as far back
      as on; all that monotonic paths use of it is its later half, whose softmax this is.
    """
    distances, size = range(jumps.shape[-1]), mask.shape[-1]
    within = jnp.stack([_behind(mask, distance, False) for distance in distances], axis=-1)
    # Twice: what is masked must not count in the softmax, nor come out of it as 1 / J where a row
    # has no jump at all.
    log_probs = jnp.where(within, upcast(jumps), NEVER)
    log_probs = jnp.where(within, jax.nn.log_softmax(log_probs, axis=-1), NEVER)
    leaving = reached[..., None] + log_probs  # *B S J
    # Shifted by each distance, all that arrive at a slot stand at its place: J times *B S.
    arriving = [_ahead(leaving[..., distance], min(distance, size)) for distance in distances]
    return jnp.where(mask, jax.nn.logsumexp(jnp.stack(arriving), axis=0), NEVER)


def move_through_gates(
    gates: Gates, reached: Float[Array, "*#B S"], mask: Bool[Array, "*#B S"]
) -> Float[Array, "*B S"]:
    """Segments: from slot to slot, each of which is left or writes the next token.

    p(a_t = i | a_{t-1} = k) = emit[i] prod_{k <= j < i} skip[j], i >= k

    What stands at slot i, q[i] = skip[i-1] q[i-1] + reached[i], is an associative scan: exact, also
    where gates are wide open or shut.

    Source:
      Yu, Buys and Blunsom (2016), on the alignment probability of their transducer.
    """

    def joined(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
        # In log space: what stood before is skipped on, and joins what stands here already.
        return one[0] + other[0], jnp.logaddexp(one[1] + other[0], other[1])

    # q[i] asks for the gate of the slot before.
    skipped = _ahead(gates.skip, 1)
    shape = jnp.broadcast_shapes(skipped.shape, reached.shape)
    parts = jnp.broadcast_to(skipped, shape), jnp.broadcast_to(reached, shape)
    _, standing = jax.lax.associative_scan(joined, parts, axis=-1)
    return jnp.where(mask, _at_least_never(gates.emit + standing), NEVER)


def emission_gates(scores: Float[Array, "*B S"], mask: Bool[Array, "*#B S"]) -> Gates:
    """Returns gates that are open by sigmoid(score), the last slot's always, padding's never.

    Source:
      Yu, Buys and Blunsom (2016), on the alignment probability of their transducer.

    Deviations:
      The paper does not say what becomes of a path that leaves the last slot. Here none does, so
      that probabilities add up to one.
    """
    scores, mask = _possible(scores, mask)
    # Beyond the last real slot nothing is written, and nothing would stop a path from going on.
    is_last, inside = last_slot(mask), mask & ~last_slot(mask)
    emit = jnp.where(inside, jax.nn.log_sigmoid(scores), jnp.where(is_last, 0.0, NEVER))
    skip = jnp.where(inside, jax.nn.log_sigmoid(-scores), jnp.where(is_last, NEVER, 0.0))
    return Gates(emit, skip)


INDEPENDENT = Transition(move_anywhere, is_parallel=True)
MONOTONIC = Transition(move_onwards)
RELATIVE_JUMPS = Transition(move_by_jumps)
SEGMENTS = Transition(move_through_gates, ends_at_last=True)


def condition(
    prior: Float[Array, "*B S"], emissions: Float[Array, "*#B S"]
) -> tuple[Float[Array, "*B"], Float[Array, "*B S"]]:
    """Bayes' rule: returns (log p(y), log p(slot | y)) of a token whose emissions are known."""
    joint = _at_least_never(prior + emissions)
    log_prob = jax.nn.logsumexp(joint, axis=-1)
    return log_prob, _at_least_never(joint - log_prob[..., None])


def sum_over_paths(
    transition: Transition,
    moves: Any,
    emissions: Float[Array, "*B T S"],
    mask: Bool[Array, "*B S"],
    target_mask: Bool[Array, "*B T"],
) -> Paths:
    """Forward algorithm: sums over all paths through the slots of the source.

    Args:
      transition: How paths go on.
      moves: What decides on it at each target position, arrays `*B T S ...`.
      emissions: log p(y_t | slot), whatever stands at padding; minus infinity is allowed.
      mask: True at real slots.
      target_mask: True at real target tokens.

    Returns:
      The prior of each slot and the log-probability of each token. A token that no path can write
      has about `NEVER`.
    """
    is_real = mask[..., None, :] & target_mask[..., None]
    emissions = jnp.where(is_real, _at_least_never(upcast(emissions)), NEVER)
    axis = emissions.ndim - 2
    # No recursion: whatever the last token was written from, the next prior is the same.
    if transition.is_parallel:
        prior = transition.move(moves, first_slot(mask)[..., None, :], mask[..., None, :])
        log_probs, _ = condition(prior, emissions)
        return Paths(prior, jnp.where(target_mask, log_probs, 0.0))

    def step(reached: Array, inputs: Any) -> tuple[Array, tuple[Array, Array]]:
        moves, emissions, is_token = inputs
        prior = transition.move(moves, reached, mask)
        log_prob, new = condition(prior, emissions)
        # At padding a path stays where it was, so that the last state is that after the last real
        # token.
        return jnp.where(is_token[..., None], new, reached), (prior, log_prob)

    inputs = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, axis, 0), (moves, emissions, target_mask))
    # A token is written from the first slot at the earliest: there a path begins, before any token.
    _, outputs = jax.lax.scan(step, first_slot(mask).astype(emissions.dtype), inputs)
    prior, log_probs = (jnp.moveaxis(leaf, 0, axis) for leaf in outputs)
    return Paths(prior, jnp.where(target_mask, log_probs, 0.0))


def slot_posterior(
    transition: Transition,
    moves: Any,
    emissions: Float[Array, "*B T S"],
    mask: Bool[Array, "*B S"],
    target_mask: Bool[Array, "*B T"],
) -> Float[Array, "*B T S"]:
    """Posterior alignment: p(a_t = i | y_1 .. y_T), given the whole target.

    It is the derivative of log p(y | x) by the emissions: the backward pass of the sum over paths
    is the backward recursion. The arguments are those of `sum_over_paths`; padding has zeros.
    """

    def total(emissions: Array) -> Array:
        return sum_over_paths(transition, moves, emissions, mask, target_mask).log_probs.sum()

    return jax.grad(total)(upcast(emissions))


def _possible(scores: Array, mask: Array) -> tuple[Array, Array]:
    """Returns (scores, mask) of the slots that neither of them forbids."""
    scores = upcast(scores)
    # Half of it, for a score of `NEVER` to which something was added still forbids its slot.
    mask = mask & (scores > NEVER / 2)
    return jnp.where(mask, scores, NEVER), mask


def _at_least_never(log_probs: Array) -> Array:
    # Not `maximum`, which has half a gradient where both are equal, as sums with `NEVER` are.
    return jnp.where(log_probs > NEVER, log_probs, NEVER)


def _behind(array: Array, distance: int, nothing: bool) -> Array:
    """Returns what stands so many slots after each."""
    kept = array[..., distance:]
    missing = jnp.full((*array.shape[:-1], min(distance, array.shape[-1])), nothing)
    return jnp.concatenate([kept, missing], axis=-1)


def _ahead(array: Array, distance: int) -> Array:
    """Moves what stands at slots so many slots on."""
    missing = jnp.full((*array.shape[:-1], distance), NEVER, array.dtype)
    return jnp.concatenate([missing, array[..., : array.shape[-1] - distance]], axis=-1)
