"""Hypotheses that never compete: one token after another is chosen for each on its own."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from attention_jax.search.config import SearchConfig
from attention_jax.search.coverage import coverage_penalty, word_columns
from attention_jax.search.hypotheses import Hypotheses
from attention_jax.search.lengths import length_limits
from attention_jax.search.scores import hypothesis_scores
from attention_jax.search.state import repeat_state
from attention_jax.search.vocabulary import mask_logits
from attention_jax.types import SpecialIds

Choose = Callable[[Float[Array, "B K V"], Int[Array, ""]], Int[Array, "B K"]]


def roll_out(
    step: Callable[[Any, Array], tuple[Array, Array, Any]],
    state: Any,
    choose: Choose,
    config: SearchConfig,
    source_lengths: Int[Array, "B"],
    max_length: int,
) -> Hypotheses:
    """Continues `config.num_hypotheses` outputs of each source until all have ended.

    Args:
      step: See `dispatch.search`, as for the other arguments.
      state: Leaves `B 1 ...`.
      choose: From the logits of the tokens that may stand at a position (minus infinity for the
        others) and the position to a token for each hypothesis.
      config: Number of hypotheses, limits and normalisation.
      source_lengths: Source tokens with EOS.
      max_length: L.

    Returns:
      The hypotheses, best first. Their log-probabilities are the model's own, whatever `choose`
      drew from.
    """
    batch, number = source_lengths.shape[0], config.num_hypotheses
    shortest, longest = length_limits(config, source_lengths, max_length)
    state = repeat_state(state, batch, number)
    tokens = jnp.full((batch, number), SpecialIds.BOS, jnp.int32)
    _, weights, _ = jax.eval_shape(step, state, tokens)

    def advance(carry):
        position, state, tokens, live, log_probs, lengths, all_tokens, all_weights = carry
        logits, weights, state = step(state, tokens)
        logits = logits.astype(jnp.float32)
        allowed = mask_logits(logits, all_tokens, config, position, shortest, longest)
        tokens = choose(allowed, position)
        tokens = jnp.where(live, tokens, SpecialIds.PAD).astype(jnp.int32)
        log_prob = jnp.take_along_axis(logits, tokens[..., None], axis=-1)[..., 0]
        log_prob = log_prob - jax.nn.logsumexp(logits, axis=-1)
        return (
            position + 1,
            state,
            tokens,
            live & (tokens != SpecialIds.EOS),
            log_probs + jnp.where(live, log_prob, 0),
            lengths + live,
            all_tokens.at[position].set(tokens),
            all_weights.at[position].set(jnp.where(live[..., None], weights, 0)),
        )

    exists = jnp.broadcast_to((longest > 0)[:, None], (batch, number))
    start = (
        jnp.int32(0),
        state,
        tokens,
        exists,
        jnp.where(exists, 0.0, -jnp.inf),
        jnp.zeros((batch, number), jnp.int32),
        jnp.zeros((max_length, batch, number), jnp.int32),
        jnp.zeros((max_length, *weights.shape), weights.dtype),
    )
    *_, log_probs, lengths, tokens, weights = lax.while_loop(
        lambda carry: (carry[0] < max_length) & jnp.any(carry[3]), advance, start
    )
    penalties = None
    if config.coverage_penalty != "none":
        words = word_columns(source_lengths, weights.shape[-1])
        penalties = coverage_penalty(config, weights.sum(axis=0), words)
    scores = hypothesis_scores(config, log_probs, lengths, penalties)
    scores, order = lax.top_k(scores, number)

    def sort(values):
        return jax.vmap(lambda value, index: value[index])(values, order)

    return Hypotheses(
        tokens=sort(jnp.moveaxis(tokens, 0, -1)),
        lengths=sort(lengths),
        log_probs=sort(log_probs),
        scores=scores,
        weights=sort(jnp.moveaxis(weights, 0, -2)),
    )
