"""Length normalization: how long an output may be, and how its length enters its score."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention_jax.search.config import ROUNDING, SearchConfig


def length_limits(
    config: SearchConfig, source_lengths: Int[Array, "B"], max_length: int
) -> tuple[Int[Array, "B"], Int[Array, "B"]]:
    """Length limits: returns the fewest and the most tokens that each source's output may have.

    Args:
      config: Gives both as multiples of the source's length.
      source_lengths: Source tokens with EOS; 0 marks a filler row, which gets no output.
      max_length: The most that any output may have, the size of the arrays.

    Returns:
      (shortest, longest), EOS included. EOS is always allowed at the last position, so
      `shortest` never exceeds `longest`.
    """
    lengths = source_lengths.astype(float)  # factors are no whole numbers
    longest = jnp.floor(config.max_length_factor * lengths + ROUNDING)
    longest += config.max_length_constant
    longest = jnp.clip(longest, 1, max_length).astype(jnp.int32)
    longest = jnp.where(source_lengths > 0, longest, 0)
    # EOS is a token: one more than is asked for.
    shortest = jnp.floor(config.min_length_ratio * lengths + ROUNDING)
    shortest += config.min_length_constant + 1
    # Compared as floats: a large ratio would overflow an int32.
    return jnp.minimum(shortest, longest.astype(float)).astype(jnp.int32), longest


def length_penalty(config: SearchConfig, lengths: Int[Array, "*B"]) -> Float[Array, "*B"]:
    """Length penalty: computes what a hypothesis's log-probability is divided by.

    none: 1;  length: n^alpha;  gnmt: ((5 + n) / (5 + 1))^alpha

    It never falls with the length: the early stop of beam search relies on that.

    Source:
      gnmt: Wu et al. 2016, Google's Neural Machine Translation System, eq. 14.
    """
    lengths = jnp.maximum(lengths, 1).astype(float)  # of filler, whose zero would divide
    if config.length_normalization == "none":
        return jnp.ones_like(lengths)
    if config.length_normalization == "gnmt":
        lengths = (5 + lengths) / 6
    return lengths**config.length_alpha
