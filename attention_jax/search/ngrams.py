"""N-gram blocking: tokens that would complete an n-gram for the second time."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int


def without_repeats(
    logits: Float[Array, "B K V"],
    written: Int[Array, "B K L"],
    position: Int[Array, ""],
    size: int,
) -> Float[Array, "B K V"]:
    """N-gram blocking: rules out the tokens that would complete an n-gram for the second time.

    Wherever the last n - 1 tokens stood before, the logit of the token that followed them then
    becomes minus infinity.
    EOS, which no beginning contains, never is; nor is a token beside which nothing is possible, as
    where a prompt dictates the next one.

    Args:
      logits: Of the token at `position`.
      written: The tokens before it; what stands at `position` and beyond does not matter.
      position: How many there are.
      size: n, at least 1.

    Source:
      Paulus, Xiong and Socher 2017, A Deep Reinforced Model for Abstractive Summarization, for
      n = 3.
    """
    batch, hypotheses, vocabulary = logits.shape
    starts = written.shape[-1] - size + 1
    if starts < 1:  # there is no room for two of them
        return logits
    first = jnp.maximum(position - size + 1, 0)  # where the last n - 1 tokens begin
    # The last n - 1 tokens; while there are fewer, `repeats` below is False everywhere.
    last = lax.dynamic_slice_in_dim(written, first, size - 1, axis=-1)
    repeats = jnp.arange(starts) + size <= position  # a whole n-gram was written from here
    repeats = jnp.broadcast_to(repeats, (batch, hypotheses, starts))
    for offset in range(size - 1):
        # All starts at once, one offset after the other: B K starts.
        repeats &= written[..., offset : offset + starts] == last[..., offset, None]
    # A token beyond the vocabulary is dropped.
    ruled_out = jnp.where(repeats, written[..., size - 1 :], vocabulary)
    # Of each hypothesis, at most one token for each start; several may rule out the same.
    rows, columns = jnp.ogrid[:batch, :hypotheses]
    others = logits.at[rows[..., None], columns[..., None], ruled_out].set(-jnp.inf, mode="drop")
    return jnp.where(jnp.all(others == -jnp.inf, axis=-1, keepdims=True), logits, others)
