"""Hypotheses: what every search returns."""

import dataclasses

import jax
from jaxtyping import Array, Float, Int


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Hypotheses:
    """Hypotheses: the outputs found for each source, best first.

    Every hypothesis ends in EOS. Where fewer than N exist, as for a filler row, the missing ones
    have length 0 and a score of minus infinity.

    Attributes:
      tokens: `B N L`, EOS included, PAD after it.
      lengths: `B N`, tokens with EOS.
      log_probs: `B N`, log p(tokens | source) under the model.
      scores: `B N`, `log_probs` with the length normalised away, and the coverage penalty if
        there is one, descending.
      weights: `B N L S`, the attention with which each token was predicted; zero after EOS.
    """

    tokens: Int[Array, "B N L"]
    lengths: Int[Array, "B N"]
    log_probs: Float[Array, "B N"]
    scores: Float[Array, "B N"]
    weights: Float[Array, "B N L S"]
