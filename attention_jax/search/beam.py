"""Beam search: batched, of fixed shapes, with every history kept once.

Two sets are kept for each source. The live set holds the K best unfinished beginnings and is
refilled at each position. The finished set holds the N best hypotheses that have ended; nothing
live ever displaces them. Tokens and attention are written once per position with a pointer to
the beginning that was continued, and only read back along the pointers at the end.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from attention_jax.ops.largest import largest
from attention_jax.search.config import SearchConfig
from attention_jax.search.coverage import coverage_penalty, word_columns
from attention_jax.search.hypotheses import Hypotheses
from attention_jax.search.lengths import length_limits, length_penalty
from attention_jax.search.method import Method, Step
from attention_jax.search.ngrams import without_repeats
from attention_jax.search.scores import hypothesis_scores
from attention_jax.search.state import follow, repeat_state
from attention_jax.search.vocabulary import (
    NEVER_GENERATED,
    end_allowed,
    end_required,
    next_scores,
)
from attention_jax.types import SpecialIds


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class _Live:
    """Live hypotheses: the unfinished ones, `B K`; those that do not exist have log p = -inf.

    Only a search that needs them carries the attention that each source position received and
    all the tokens so far.
    """

    log_probs: Float[Array, "B K"]
    tokens: Int[Array, "B K"]
    state: Any
    coverage: Float[Array, "B K S"] | None
    written: Int[Array, "B K L"] | None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class _Finished:
    """Finished hypotheses: the best that ended, `B N`, best first, and where their histories end.

    `ends` is the position of EOS, `parents` the live beginning that EOS was put after; `count`
    (`B`) also counts those that were not good enough to be kept.
    """

    scores: Float[Array, "B N"]
    log_probs: Float[Array, "B N"]
    ends: Int[Array, "B N"]
    parents: Int[Array, "B N"]
    count: Int[Array, "B"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class _History:
    """Backpointers: the choices of each position, `L B K`, and the attention that led to them."""

    tokens: Int[Array, "L B K"]
    parents: Int[Array, "L B K"]
    weights: Float[Array, "L B K S"]


def beam_method(
    step: Step,
    state: Any,
    config: SearchConfig,
    source_lengths: Int[Array, "B"],
    max_length: int,
    words: Bool[Array, "B S"] | None = None,
    prefix: Int[Array, "B P"] | None = None,
) -> Method:
    """Beam search: finds hypotheses of high normalised log-probability, K at a time.

    K is `config.beam_size`. A continuation by EOS ends a hypothesis if it is among the K best
    continuations of all; otherwise it is dropped, and in either case the K best others live on. A
    source is done once K hypotheses have ended, or no live one can still become one of the N best.
    An output that reaches its longest length must end there.

    Continuations are compared by their log-probabilities; a coverage penalty counts at the end,
    or everywhere with `config.coverage_stepwise`. As it is never more than zero, a live hypothesis
    cannot come to score more than its log-probability over the largest length penalty.

    The arguments are those of `dispatch.search`. The method ends with the N best hypotheses, N
    being `config.num_hypotheses`.

    Source:
      Sutskever et al. 2014, sec. 3.2, and Wu et al. 2016, sec. 7, for the normalisation.
    Deviations:
      The papers let every ended hypothesis narrow the beam; here it keeps its width. OpenNMT-py
      divides a stepwise penalty by the length penalty, too; here the score is the same with it.
    """
    batch, width = source_lengths.shape[0], config.beam_size
    shortest, longest = length_limits(config, source_lengths, max_length)
    # The penalty never falls with the length, and log-probabilities are negative: the largest
    # penalty gives the best score that a live hypothesis can still reach.
    lowest_penalised = length_penalty(config, longest)[:, None]

    def begin(room):
        live = _first_live(state, longest, batch, width)
        # How many slots there are, S, only the model knows: its step is traced for their shape.
        _, weights, _ = jax.eval_shape(step, live.state, live.tokens)
        live = _with_records(live, config, room, weights)
        history = _empty_history(room, batch, width, weights)
        return jnp.int32(0), (live, _none_finished(batch, config.num_hypotheses), history)

    def advance(carry):
        position, (live, finished, history) = carry
        predictions, weights, state = step(live.state, live.tokens)
        scores = next_scores(predictions, config, position, longest, prefix)
        ended, candidates = _continuations(scores, live, config, position, shortest, longest)
        # Of beginnings before they are continued: all continuations of one share it.
        coverage = None if live.coverage is None else live.coverage + weights
        penalties = _penalties(config, coverage, source_lengths, words)
        handicaps = penalties if config.coverage_stepwise else None
        ranked, log_probs, tokens, parents = _best(*candidates, width, handicaps)
        accepted = _among_best(ended, ranked, handicaps)
        scores = hypothesis_scores(config, ended, position + 1, penalties)
        finished = _add_ended(finished, ended, scores, accepted, position)
        # The N-th best of the finished is to be beaten; -inf while there are fewer.
        can_win = log_probs / lowest_penalised > finished.scores[:, -1:]
        open_still = (finished.count < width) & jnp.any(can_win, axis=1)
        live = _Live(
            # Once a source is done, nothing of it is live; `is_alive` needs no flag.
            log_probs=jnp.where(open_still[:, None], log_probs, -jnp.inf),
            tokens=tokens,
            state=follow(state, parents),
            coverage=follow(coverage, parents),
            written=_written(live.written, parents, position, tokens),
        )
        history = _remember(history, position, tokens, parents, weights)
        return position + 1, (live, finished, history)

    def is_alive(carry):
        _, (live, _, _) = carry
        return jnp.any(live.log_probs > -jnp.inf)

    def finish(carry):
        _, (_, finished, history) = carry
        return _read_back(finished, history)

    return Method(begin, advance, is_alive, finish)


def _first_live(state: Any, longest: Int[Array, "B"], batch: int, width: int) -> _Live:
    # All K start alike, so only the first may be continued, or they would stay copies.
    exists = (jnp.arange(width) == 0) & (longest > 0)[:, None]
    return _Live(
        log_probs=jnp.where(exists, 0.0, -jnp.inf),
        tokens=jnp.full((batch, width), SpecialIds.BOS, jnp.int32),
        state=repeat_state(state, batch, width),
        coverage=None,
        written=None,
    )


def _with_records(live: _Live, config: SearchConfig, length: int, weights: Any) -> _Live:
    """Adds the records of live hypotheses that coverage penalties and n-gram blocking need."""
    coverage = written = None
    if config.coverage_penalty != "none":
        coverage = jnp.zeros(weights.shape)
    if config.no_repeat_ngram_size:
        written = jnp.zeros((*live.tokens.shape, length), jnp.int32)
    return dataclasses.replace(live, coverage=coverage, written=written)


def _written(
    before: Int[Array, "B K L"] | None,
    parents: Int[Array, "B K"],
    position: Int[Array, ""],
    tokens: Int[Array, "B K"],
) -> Int[Array, "B K L"] | None:
    if before is None:
        return None
    return follow(before, parents).at[..., position].set(tokens)


def _penalties(
    config: SearchConfig,
    coverage: Float[Array, "B K S"] | None,
    source_lengths: Int[Array, "B"],
    words: Bool[Array, "B S"] | None,
) -> Float[Array, "B K"] | None:
    if coverage is None:
        return None
    columns = word_columns(source_lengths, coverage.shape[-1], words)
    return coverage_penalty(config, coverage, columns)


def _none_finished(batch: int, number: int) -> _Finished:
    nothing = jnp.full((batch, number), -jnp.inf)
    zeros = jnp.zeros((batch, number), jnp.int32)
    count = jnp.zeros(batch, jnp.int32)
    return _Finished(scores=nothing, log_probs=nothing, ends=zeros, parents=zeros, count=count)


def _empty_history(length: int, batch: int, width: int, weights: Any) -> _History:
    zeros = jnp.zeros((length, batch, width), jnp.int32)
    return _History(zeros, zeros, jnp.zeros((length, *weights.shape), weights.dtype))


def _remember(
    history: _History,
    position: Int[Array, ""],
    tokens: Int[Array, "B K"],
    parents: Int[Array, "B K"],
    weights: Float[Array, "B K S"],
) -> _History:
    return _History(
        tokens=history.tokens.at[position].set(tokens),
        parents=history.parents.at[position].set(parents),
        weights=history.weights.at[position].set(weights),
    )


def _continuations(
    scores: tuple[Float[Array, "B K V"], Float[Array, "B K"]],
    live: _Live,
    config: SearchConfig,
    position: Int[Array, ""],
    shortest: Int[Array, "B"],
    longest: Int[Array, "B"],
) -> tuple[Float[Array, "B K"], tuple[Float[Array, "B K M"], Int[Array, "B K M"]]]:
    """Expands the beam: scores the continuations of every live hypothesis.

    Returns:
      (ended, (candidates, tokens)): the log-probability of ending each beginning here, and its
      M best other continuations. K of them would do, for the next live set can take no more
      from one beginning; the rest make up for those that may not be generated, which is cheaper
      than to mask the logits. Repetitions, of which there may be many, are masked.
    """
    log_probs, (logits, normalizer) = live.log_probs, scores
    # B K: of each beginning, were it to end here.
    if_ended = log_probs + logits[..., SpecialIds.EOS] - normalizer
    ended = jnp.where(end_allowed(position, shortest)[:, None], if_ended, -jnp.inf)

    if live.written is not None:
        logits = without_repeats(logits, live.written, position, config.no_repeat_ngram_size)
    not_live = (SpecialIds.EOS, *NEVER_GENERATED)
    # M, as many more than K as there are tokens that may turn out to be forbidden.
    number = min(log_probs.shape[1] + len(not_live), logits.shape[-1])
    best, tokens = largest(logits, number)
    forbidden = jnp.isin(tokens, jnp.array(not_live))
    forbidden = forbidden | end_required(position, longest)[:, None, None]
    # Normalised only now: subtracting the same from all logits does not change their order.
    candidates = log_probs[..., None] + best - normalizer[..., None]
    candidates = jnp.where(forbidden, -jnp.inf, candidates)
    if live.written is not None:
        # Where blocking has left no token, the output ends, even before its shortest length.
        ended = jnp.where(jnp.all(candidates == -jnp.inf, axis=-1), if_ended, ended)
    return ended, (candidates, tokens)


def _best(
    candidates: Float[Array, "B K M"],
    tokens: Int[Array, "B K M"],
    width: int,
    handicaps: Float[Array, "B K"] | None,
) -> tuple[Float[Array, "B K"], Float[Array, "B K"], Int[Array, "B K"], Int[Array, "B K"]]:
    """Prunes to the best of all candidates: (what ranked them, log_probs, tokens, parents)."""
    batch, _, number = candidates.shape
    ranked = candidates if handicaps is None else candidates + handicaps[..., None]
    ranked, index = lax.top_k(ranked.reshape(batch, -1), width)  # B K M -> B KM -> B K
    tokens = jnp.take_along_axis(tokens.reshape(batch, -1), index, axis=1)
    log_probs = ranked
    if handicaps is not None:
        log_probs = jnp.take_along_axis(candidates.reshape(batch, -1), index, axis=1)
    # M candidates in a row are of one beginning: the quotient is its number.
    return ranked, log_probs, tokens, index // number


def _among_best(
    ended: Float[Array, "B K"], others: Float[Array, "B K"], handicaps: Float[Array, "B K"] | None
) -> Bool[Array, "B K"]:
    """Tells which endings are among the K best continuations, `others` ranked by `_best`."""
    ended = ended if handicaps is None else ended + handicaps
    rivals = jnp.concatenate([ended, others], axis=1)  # B 2K
    rank = jnp.sum(rivals[:, None, :] > ended[:, :, None], axis=-1)  # B K 2K -> B K
    return (rank < ended.shape[1]) & (ended > -jnp.inf)


def _add_ended(
    finished: _Finished,
    ended: Float[Array, "B K"],
    scores: Float[Array, "B K"],
    accepted: Bool[Array, "B K"],
    position: Int[Array, ""],
) -> _Finished:
    """Merges the accepted hypotheses that end at `position` into the finished ones."""
    width, number = ended.shape[1], finished.scores.shape[1]
    scores = jnp.where(accepted, scores, -jnp.inf)
    # B N+K -> B N; of equal scores, the one that has ended earlier stays.
    scores, index = lax.top_k(jnp.concatenate([finished.scores, scores], axis=1), number)
    slots = jnp.broadcast_to(jnp.arange(width, dtype=jnp.int32), ended.shape)

    def merge(kept, new):
        return jnp.take_along_axis(jnp.concatenate([kept, new], axis=1), index, axis=1)

    return _Finished(
        scores=scores,
        log_probs=merge(finished.log_probs, jnp.where(accepted, ended, -jnp.inf)),
        ends=merge(finished.ends, jnp.full_like(slots, position)),
        parents=merge(finished.parents, slots),
        count=finished.count + accepted.sum(axis=1, dtype=jnp.int32),
    )


def _read_back(finished: _Finished, history: _History) -> Hypotheses:
    """Backtracking: follows the pointers of each finished hypothesis from its end to its start."""
    # Fewer than N may have ended, where a beam has died out or a source is filler.
    exists = finished.scores > -jnp.inf
    lengths = jnp.where(exists, finished.ends + 1, 0)

    def before(slots, entry):
        position, tokens, parents = entry
        # `slots` are the beginnings continued at the next position; -1 beyond the end.
        inside = jnp.maximum(slots, 0)
        token = jnp.take_along_axis(tokens, inside, axis=1)
        token = jnp.where(slots >= 0, token, SpecialIds.PAD)
        parent = jnp.where(slots >= 0, jnp.take_along_axis(parents, inside, axis=1), -1)
        # A hypothesis is picked up at its EOS, which is in no history; its parent was kept.
        at_end = position + 1 == lengths
        token = jnp.where(at_end, SpecialIds.EOS, token)
        parent = jnp.where(at_end, finished.parents, parent)
        return parent, (token, parent)

    positions = jnp.arange(history.tokens.shape[0])
    nowhere = jnp.full_like(lengths, -1)
    _, (tokens, slots) = lax.scan(
        before, nowhere, (positions, history.tokens, history.parents), reverse=True
    )
    # L B K S by L B N: each token's attention is that of the beginning it was put after.
    weights = jax.vmap(follow)(history.weights, jnp.maximum(slots, 0))
    weights = jnp.where(slots[..., None] >= 0, weights, 0)
    return Hypotheses(
        tokens=jnp.moveaxis(tokens, 0, -1),  # L B N -> B N L
        lengths=lengths,
        log_probs=finished.log_probs,
        scores=finished.scores,
        weights=jnp.moveaxis(weights, 0, -2),  # L B N S -> B N L S
    )
