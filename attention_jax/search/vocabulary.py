"""Vocabulary constraints: which tokens a search may generate, or must, at a position."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.ops.predictions import Predictions
from attention_jax.search.config import SearchConfig
from attention_jax.search.ngrams import without_repeats
from attention_jax.types import SpecialIds

# What log p counts as, at the least, of a token that a prefix dictates and the model rules out.
_LEAST = -1e4


# The ids that no output contains.
NEVER_GENERATED = (SpecialIds.PAD, SpecialIds.BOS)


def searched_scores(
    predictions: Predictions, config: SearchConfig
) -> tuple[Float[Array, "B K V"], Float[Array, "B K"]]:
    """Returns (scores, log-normalizer) of predictions, minus infinity for what is left out.

    That is what the predictions leave out, and UNK where the search forbids it; a prefix may
    dictate either. The normalizer is of all ids: what is searched for is as probable as the model
    says.
    """
    scores, normalizer = predictions.scores()
    left_out = predictions.left_out()
    if left_out is not None:
        scores = jnp.where(left_out, -jnp.inf, scores)
    if config.forbid_unknown:
        scores = scores.at[..., SpecialIds.UNK].set(-jnp.inf)
    return scores, normalizer


def end_allowed(position: Int[Array, ""], shortest: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Tells where an output may end with the token at `position` (from 0)."""
    return position + 1 >= shortest


def end_required(position: Int[Array, ""], longest: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Tells where an output must end with the token at `position` (from 0)."""
    return position + 1 >= longest


def with_first_token(
    logits: Float[Array, "B K V"],
    normalizer: Float[Array, "B K"],
    first_token: int,
    position: Int[Array, ""],
    longest: Int[Array, "B"],
) -> tuple[Float[Array, "B K V"], Float[Array, "B K"]]:
    """Forced decoding of the first token: makes it certain, where there is room for an end.

    Args:
      logits: Of all tokens.
      normalizer: The logarithm of their sum.
      first_token: Id of the token that every output begins with; 0 for none.
      position: The place of the token, from 0.
      longest: Most tokens of each output.

    Returns:
      Logits and normalizer: at position 0, those of a distribution that has this token alone.
    """
    if not first_token:
        return logits, normalizer
    is_forced = ((position == 0) & (longest > 1))[:, None]  # B 1
    certain = jnp.where(jnp.arange(logits.shape[-1]) == first_token, 0.0, -jnp.inf)
    logits = jnp.where(is_forced[..., None], certain.astype(logits.dtype), logits)
    return logits, jnp.where(is_forced, 0.0, normalizer)


def next_scores(
    predictions: Predictions,
    config: SearchConfig,
    position: Int[Array, ""],
    longest: Int[Array, "B"],
    prefix: Int[Array, "B P"] | None = None,
) -> tuple[Float[Array, "B K V"], Float[Array, "B K"]]:
    """Prefix-constrained decoding: scores the tokens that may be written at a position.

    Where a prefix goes on, its token is the only one, and is as probable as the model says. The
    prefix stands behind the first token, where there is one, and never in the place of an end that
    is required.

    Args:
      predictions: Of the next token.
      config: Its `first_token` is used.
      position: The place of the token, from 0.
      longest: Most tokens of each output.
      prefix: What outputs begin with, UNK or ids that are not special, PAD behind it; None where
        none is forced.

    Returns:
      (scores, log-normalizer), as `searched_scores` has them.

    Source:
      Wuebker et al. 2016, Models and Inference for Prefix-Constrained Machine Translation.
    """
    free = searched_scores(predictions, config)
    scores = with_first_token(*free, config.first_token, position, longest)
    if prefix is None:
        return scores
    # PAD in the place of the first token, and behind the longest prefix.
    padded = jnp.pad(prefix, [(0, 0), (int(config.first_token > 0), 1)])
    token = padded[:, jnp.minimum(position, padded.shape[1] - 1), None, None]  # B 1 1
    is_forced = (token != SpecialIds.PAD) & ~end_required(position, longest)[:, None, None]
    # Also of an id that a search would leave out.
    known, normalizer = predictions.scores()
    known = jnp.maximum(known, normalizer[..., None] + _LEAST)
    forced = jnp.where(jnp.arange(known.shape[-1]) == token, known, -jnp.inf)
    return jnp.where(is_forced, forced, scores[0]), scores[1]


def mask_logits(
    logits: Float[Array, "B K V"],
    written: Int[Array, "L B K"],
    config: SearchConfig,
    position: Int[Array, ""],
    shortest: Int[Array, "B"],
    longest: Int[Array, "B"],
) -> Float[Array, "B K V"]:
    """Constrained decoding: rules out, by minus infinity, tokens that may not stand at `position`.

    Args:
      logits: Of all tokens.
      written: The tokens before `position`; what stands beyond does not matter.
      config: Which repetitions are not generated.
      position: The place of the token, from 0.
      shortest: Fewest tokens of each output.
      longest: Most tokens of each output.

    Returns:
      Logits of which at least one is finite: if nothing else may, EOS may follow.
    """
    size = config.no_repeat_ngram_size
    if size:
        # L B K -> B K L: a search writes along the first axis, n-grams run along the last.
        logits = without_repeats(logits, jnp.moveaxis(written, 0, -1), position, size)
    ids = jnp.arange(logits.shape[-1])
    is_end = ids == SpecialIds.EOS
    allowed = ~jnp.isin(ids, jnp.array(NEVER_GENERATED))
    allowed = allowed & (end_allowed(position, shortest)[:, None] | ~is_end)
    # The longest length wins over the shortest, should the two contradict each other.
    allowed = jnp.where(end_required(position, longest)[:, None], is_end, allowed)
    logits = jnp.where(allowed[:, None, :], logits, -jnp.inf)  # B V -> B 1 V
    if size:
        nothing = jnp.all(logits == -jnp.inf, axis=-1, keepdims=True)
        # Any finite number: it is the only one in its row.
        logits = jnp.where(nothing & is_end, 0.0, logits)
    return logits
