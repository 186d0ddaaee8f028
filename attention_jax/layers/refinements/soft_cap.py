"""Capped scores: they stay within +- cap, almost unchanged where they are small.

  scores = cap tanh(scores / cap)
"""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.refinement import Head, RefinementConfig, change_score

PAPER = "Gemma Team (2024), Gemma 2, section 2, logit soft-capping"


@dataclasses.dataclass(frozen=True)
class Config(RefinementConfig):
    """Capped scores.

    Attributes:
      cap: The limit (50 in the paper).
    """

    cap: float = setting(50.0, above=0.0)
    order: ClassVar[int] = 40
    tells_key_bias: ClassVar[bool] = True


def refine(config: Config, parts: MechanismParts, head: Head) -> MechanismParts:
    """Caps the scores."""
    return change_score(
        parts, lambda params, scores, *unused: config.cap * jnp.tanh(scores / config.cap)
    )
