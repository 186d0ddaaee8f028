"""Autoregressive rollout, greedy among others: hypotheses never compete, each goes on by itself."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from attention_jax.search.config import SearchConfig
from attention_jax.search.coverage import coverage_penalty, word_columns
from attention_jax.search.hypotheses import Hypotheses
from attention_jax.search.lengths import length_limits
from attention_jax.search.method import Method, Step
from attention_jax.search.scores import hypothesis_scores
from attention_jax.search.state import repeat_state
from attention_jax.search.vocabulary import mask_logits, next_scores
from attention_jax.types import SpecialIds

Choose = Callable[[Float[Array, "B K V"], Int[Array, ""]], Int[Array, "B K"]]


class _Outputs(NamedTuple):
    """The outputs so far: `B K`, or `L B K` where each position has a value of its own."""

    state: Any
    latest: Int[Array, "B K"]
    is_live: Bool[Array, "B K"]
    log_probs: Float[Array, "B K"]
    lengths: Int[Array, "B K"]
    tokens: Int[Array, "L B K"]
    weights: Float[Array, "L B K S"]


def rollout_method(
    step: Step,
    state: Any,
    choose: Choose,
    config: SearchConfig,
    source_lengths: Int[Array, "B"],
    max_length: int,
    words: Bool[Array, "B S"] | None = None,
    prefix: Int[Array, "B P"] | None = None,
) -> Method:
    """Rollout: continues `config.num_hypotheses` outputs of each source until all have ended.

    Args:
      step: See `dispatch.search`, as for the other arguments.
      state: Leaves `B 1 ...`.
      choose: From the logits of the tokens that may stand at a position (minus infinity for the
        others) and the position to a token for each hypothesis.
      config: Number of hypotheses, limits and normalisation.
      source_lengths: Source tokens with EOS.
      max_length: L.
      words: See `dispatch.search`.
      prefix: Likewise.

    Returns:
      The method, which ends with the hypotheses, best first. Their log-probabilities are the
      model's own, whatever `choose` drew from.
    """
    batch, number = source_lengths.shape[0], config.num_hypotheses
    shortest, longest = length_limits(config, source_lengths, max_length)

    def begin(room):
        first = repeat_state(state, batch, number)
        tokens = jnp.full((batch, number), SpecialIds.BOS, jnp.int32)
        exists = jnp.broadcast_to((longest > 0)[:, None], (batch, number))
        # How many slots there are, S, only the model knows: its step is traced for their shape.
        _, weights, _ = jax.eval_shape(step, first, tokens)
        return jnp.int32(0), _Outputs(
            state=first,
            latest=tokens,
            is_live=exists,
            log_probs=jnp.where(exists, 0.0, -jnp.inf),
            lengths=jnp.zeros((batch, number), jnp.int32),
            tokens=jnp.zeros((room, batch, number), jnp.int32),
            weights=jnp.zeros((room, *weights.shape), weights.dtype),
        )

    def advance(carry):
        position, outputs = carry
        predictions, weights, state = step(outputs.state, outputs.latest)
        logits, normalizer = next_scores(predictions, config, position, longest, prefix)
        live = outputs.is_live
        allowed = mask_logits(logits, outputs.tokens, config, position, shortest, longest)
        tokens = choose(allowed, position)
        # An output that has ended goes on with padding until all have.
        tokens = jnp.where(live, tokens, SpecialIds.PAD).astype(jnp.int32)
        # From the model's own logits, not from those that were masked or tempered: B K V -> B K.
        log_prob = jnp.take_along_axis(logits, tokens[..., None], axis=-1)[..., 0]
        log_prob = log_prob - normalizer
        # Where nothing is written any more, nothing has been attended to for it.
        weights = jnp.where(live[..., None], weights, 0)
        return position + 1, _Outputs(
            state=state,
            latest=tokens,
            is_live=live & (tokens != SpecialIds.EOS),  # EOS itself still counts below
            log_probs=outputs.log_probs + jnp.where(live, log_prob, 0),
            lengths=outputs.lengths + live,  # as it was before this token: EOS is counted
            tokens=outputs.tokens.at[position].set(tokens),
            weights=outputs.weights.at[position].set(weights),
        )

    def is_alive(carry):
        return jnp.any(carry[1].is_live)

    def finish(carry):
        return _best_first(carry[1], config, source_lengths, words)

    return Method(begin, advance, is_alive, finish)


def greedy_method(
    step: Step,
    state: Any,
    config: SearchConfig,
    source_lengths: Int[Array, "B"],
    max_length: int,
    words: Bool[Array, "B S"] | None = None,
    prefix: Int[Array, "B P"] | None = None,
) -> Method:
    """Greedy search: takes y_t = argmax p(y | y_<t, x) until EOS; arguments as for `search`."""

    def choose(logits, position):
        del position
        return jnp.argmax(logits, axis=-1)

    return rollout_method(step, state, choose, config, source_lengths, max_length, words, prefix)


def _best_first(
    outputs: _Outputs,
    config: SearchConfig,
    source_lengths: Int[Array, "B"],
    words: Bool[Array, "B S"] | None,
) -> Hypotheses:
    penalties = None
    if config.coverage_penalty != "none":
        columns = word_columns(source_lengths, outputs.weights.shape[-1], words)
        penalties = coverage_penalty(config, outputs.weights.sum(axis=0), columns)
    scores = hypothesis_scores(config, outputs.log_probs, outputs.lengths, penalties)
    # All of them, in descending order; of equals the first stays first.
    scores, order = lax.top_k(scores, scores.shape[1])

    def sort(values):
        return jax.vmap(lambda value, index: value[index])(values, order)

    return Hypotheses(
        tokens=sort(jnp.moveaxis(outputs.tokens, 0, -1)),  # L B N -> B N L
        lengths=sort(outputs.lengths),
        log_probs=sort(outputs.log_probs),
        scores=scores,
        weights=sort(jnp.moveaxis(outputs.weights, 0, -2)),  # L B N S -> B N L S
    )
