"""Sampling: plain, tempered, from the k best tokens, or from the nucleus."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from attention_jax.search.config import SearchConfig
from attention_jax.search.method import Method, Step
from attention_jax.search.rollout import rollout_method


def sample_method(
    step: Step,
    state: Any,
    config: SearchConfig,
    source_lengths: Int[Array, "B"],
    max_length: int,
    rng: jax.Array,
    words: Bool[Array, "B S"] | None = None,
    prefix: Int[Array, "B P"] | None = None,
) -> Method:
    """Sampling: draws `config.num_hypotheses` outputs of each source, token by token.

    The logits are divided by the temperature, then cut to the `top_k` best, then to the nucleus
    `top_p`. The token at position t is drawn with the key `fold_in(rng, t)`. The arguments are
    those of `search`.
    """

    def choose(logits, position):
        logits = logits / config.temperature
        # A static choice: what is not configured is not compiled.
        if config.top_k:
            logits = keep_top_k(logits, config.top_k)
        if config.top_p < 1:
            logits = keep_nucleus(logits, config.top_p)
        return jax.random.categorical(jax.random.fold_in(rng, position), logits)

    return rollout_method(step, state, choose, config, source_lengths, max_length, words, prefix)


def keep_top_k(logits: Float[Array, "*B V"], k: int) -> Float[Array, "*B V"]:
    """Top-k sampling: sets logits below the k-th largest to minus infinity; ties with it stay."""
    least = lax.top_k(logits, min(k, logits.shape[-1]))[0][..., -1:]  # the k-th largest, *B 1
    return jnp.where(logits >= least, logits, -jnp.inf)


def keep_nucleus(logits: Float[Array, "*B V"], p: float) -> Float[Array, "*B V"]:
    """Nucleus sampling: keeps the fewest most probable tokens that together have at least `p`.

    A token stays if those more probable than it have less than `p` together, so that at least
    one does; ties with the last one that stays also do.

    Source:
      Holtzman et al. 2020, The Curious Case of Neural Text Degeneration, eq. 2.
    """
    descending = -jnp.sort(-logits, axis=-1)  # jnp.sort ascends
    probabilities = jax.nn.softmax(descending, axis=-1)
    # What the more probable tokens have together, without the token's own share.
    before = jnp.cumsum(probabilities, axis=-1) - probabilities
    # The smallest logit that stays: compared with that, nothing has to be put back in order.
    least = jnp.min(jnp.where(before < p, descending, jnp.inf), axis=-1, keepdims=True)
    return jnp.where(logits >= least, logits, -jnp.inf)
