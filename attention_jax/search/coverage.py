"""Coverage penalties: how much attention each source word has received, and what is paid for it."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.search.config import SearchConfig

# Attention to a word that received less counts as this, so that a forgotten word costs 23 beta.
_LEAST = 1e-10


def word_columns(
    source_lengths: Int[Array, "B"], size: int, words: Bool[Array, "B S"] | None = None
) -> Bool[Array, "B 1 S"]:
    """Tells which columns of attention, one for each slot of the memory, belong to words.

    The source's EOS is not one of them, nor is padding: EOS has nothing to be translated, every
    output attends to it while it ends, and target words without a counterpart may attend to it at
    no cost.

    Args:
      source_lengths: Source tokens with EOS.
      size: S, the columns that there are.
      words: True at slots that stand for words; None where slot s is source token s.
    """
    if words is not None:
        return words[:, None]
    return (jnp.arange(size) < source_lengths[:, None] - 1)[:, None]


def coverage_penalty(
    config: SearchConfig, coverage: Float[Array, "*B S"], words: Bool[Array, "*#B S"]
) -> Float[Array, "*B"]:
    """Coverage penalty: computes what a hypothesis's score gets for its attention, at most zero.

    gnmt:     beta sum_s log(min(c[s], 1)), for words that were attended to too little
    summary: -beta sum_s (max(c[s], 1) - 1), for words that were attended to too much

    Args:
      config: Which of them, not `none`, and beta.
      coverage: c, the attention to each slot of the source, summed over the tokens of a hypothesis.
      words: The slots that count.

    Source:
      gnmt: Wu et al. 2016, Google's Neural Machine Translation System, eq. 14. summary: the
      coverage penalty of that name in OpenNMT-py.
    Deviations:
      c is taken as at least 1e-10 in `gnmt`, or a word without attention would cost infinitely
      much. The source's EOS does not count; see `word_columns`.
    """
    if config.coverage_penalty == "gnmt":
        terms = jnp.log(jnp.clip(coverage, _LEAST, 1.0))
    else:
        terms = 1.0 - jnp.maximum(coverage, 1.0)
    return config.coverage_beta * jnp.sum(jnp.where(words, terms, 0.0), axis=-1)
