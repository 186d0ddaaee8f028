"""The one entry point to all searches."""

from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import Array, Int

from attention_jax.search.beam import beam_search
from attention_jax.search.config import SearchConfig
from attention_jax.search.greedy import greedy_search
from attention_jax.search.hypotheses import Hypotheses
from attention_jax.search.sample import sample_search


def search(
    step: Callable[[Any, Array], tuple[Array, Array, Any]],
    state: Any,
    config: SearchConfig,
    source_lengths: Int[Array, "B"],
    max_length: int,
    rng: jax.Array | None = None,
) -> Hypotheses:
    """Searches the outputs of a batch of sources by the configured method.

    It can be jitted with `config` and `max_length` static.

    Args:
      step: `step(state, tokens)` with the previous token of every hypothesis (`B K`, BOS at
        first) returns (logits `B K V`, attention weights `B K S`, new state).
      state: A pytree with leaves `B 1 ...` as it stands before the first token. It is repeated
        for the K hypotheses, and every leaf follows its hypothesis from then on.
      config: Method, limits and normalisation.
      source_lengths: Source tokens with EOS, for the limits; 0 for filler rows.
      max_length: L, the longest output that the arrays have room for, EOS included; see
        `SearchConfig.longest`.
      rng: Key of the randomness, with `config.seed`; needed by `sample` only.

    Returns:
      The `config.num_hypotheses` best hypotheses of each source.

    Raises:
      ValueError: If a leaf of `state` is not `B 1 ...`, or `sample` has no `rng`.
    """
    if config.method == "beam":
        return beam_search(step, state, config, source_lengths, max_length)
    if config.method == "greedy":
        return greedy_search(step, state, config, source_lengths, max_length)
    if rng is None:
        raise ValueError("search by sampling needs rng")
    rng = jax.random.fold_in(rng, config.seed)
    return sample_search(step, state, config, source_lengths, max_length, rng)
