"""Entropy bonus: attention is rewarded for staying undecided, lest it settle too early."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.configuration import setting
from attention_jax.objectives.nll import sentence_count, token_count
from attention_jax.objectives.real_attention import real_weights
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.objectives.term import NEEDS_ALIGNMENT
from attention_jax.types import Batch, ModelOutput

PAPER = "Xu et al. (2015), section 4.1, the entropy term"


@dataclasses.dataclass(frozen=True)
class Term:
    """Entropy bonus, the objective `attention_entropy`: config and computation.

    loss = -sum_t H(weights[t]),   H(w) = -sum_s w[s] log w[s], in nats

    over the real target tokens. Its sign is that of a bonus: a larger entropy is a smaller loss. It
    keeps hard attention from reading the same slot at every step before it knows better. Where an
    attention has several heads, the weights are those that stand for all.

    Attributes:
      weight: Factor of this term in the loss: lambda_e of the paper, 0.002 in the authors' program.
      schedule: How the weight changes during training.
      reduction: Divide the sum by the number of target tokens (`per_token`) or of sentences
        (`per_sentence`), as in `nll`.
    """

    weight: float = setting(0.002, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    reduction: str = setting("per_token", choices=("per_token", "per_sentence"))
    needs: ClassVar[Mapping[str, str]] = NEEDS_ALIGNMENT

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of real target tokens, or of real sentences."""
        return token_count(batch) if self.reduction == "per_token" else sentence_count(batch)

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the negative entropy summed over the real target tokens."""
        weights = real_weights(output, batch)
        is_read = weights > 0  # 0 log 0 is 0, and has no derivative
        # -H: what is minimised falls as the entropy rises.
        return jnp.sum(weights * jnp.log(jnp.where(is_read, weights, 1.0)))
