"""Greedy search: at each position the most probable token."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from attention_jax.search.config import SearchConfig
from attention_jax.search.method import Method, Step
from attention_jax.search.rollout import rollout_method


def greedy_method(
    step: Step,
    state: Any,
    config: SearchConfig,
    source_lengths: Int[Array, "B"],
    max_length: int,
    words: Bool[Array, "B S"] | None = None,
) -> Method:
    """Takes y_t = argmax p(y | y_<t, x) until EOS; the arguments are those of `search`."""

    def choose(logits, position):
        del position
        return jnp.argmax(logits, axis=-1)

    return rollout_method(step, state, choose, config, source_lengths, max_length, words)
