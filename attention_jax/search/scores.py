"""Hypothesis scores: what searches compare by."""

from jaxtyping import Array, Float, Int

from attention_jax.search.config import SearchConfig
from attention_jax.search.lengths import length_penalty


def hypothesis_scores(
    config: SearchConfig,
    log_probs: Float[Array, "*B"],
    lengths: Int[Array, "*#B"],
    penalties: Float[Array, "*B"] | None = None,
) -> Float[Array, "*B"]:
    """Hypothesis score: computes s(Y, X) = log p(Y | X) / lp(Y) + cp(X, Y).

    Args:
      config: Decides lp; see `lengths.length_penalty`.
      log_probs: log p(Y | X).
      lengths: Tokens of Y with EOS.
      penalties: cp, from `coverage.coverage_penalty`; None where there is none.

    Source:
      Wu et al. 2016, Google's Neural Machine Translation System, eq. 14.
    """
    scores = log_probs / length_penalty(config, lengths)
    return scores if penalties is None else scores + penalties
