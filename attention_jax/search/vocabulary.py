"""Vocabulary constraints: which tokens a search may generate at a position."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.search.config import SearchConfig
from attention_jax.search.ngrams import without_repeats
from attention_jax.types import SpecialIds


def never_generated(config: SearchConfig) -> tuple[int, ...]:
    """Lists the ids that no output contains."""
    unknown = (SpecialIds.UNK,) if config.forbid_unknown else ()
    return (SpecialIds.PAD, SpecialIds.BOS, *unknown)


def end_allowed(position: Int[Array, ""], shortest: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Tells where an output may end with the token at `position` (from 0)."""
    return position + 1 >= shortest


def end_required(position: Int[Array, ""], longest: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Tells where an output must end with the token at `position` (from 0)."""
    return position + 1 >= longest


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
      config: What is never generated, and which repetitions are not.
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
    allowed = ~jnp.isin(ids, jnp.array(never_generated(config)))
    allowed = allowed & (end_allowed(position, shortest)[:, None] | ~is_end)
    # The longest length wins over the shortest, should the two contradict each other.
    allowed = jnp.where(end_required(position, longest)[:, None], is_end, allowed)
    logits = jnp.where(allowed[:, None, :], logits, -jnp.inf)  # B V -> B 1 V
    if size:
        nothing = jnp.all(logits == -jnp.inf, axis=-1, keepdims=True)
        # Any finite number: it is the only one in its row.
        logits = jnp.where(nothing & is_end, 0.0, logits)
    return logits
