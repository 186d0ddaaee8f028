"""Coverage loss: the attention that falls on what has been attended to before."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.configuration import setting
from attention_jax.objectives.nll import token_count
from attention_jax.objectives.real_attention import real_weights
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.objectives.term import NEEDS_ALIGNMENT
from attention_jax.types import Batch, ModelOutput

PAPER = "See, Liu and Manning (2017), section 2.3, eq. 12 and 13"


@dataclasses.dataclass(frozen=True)
class Term:
    """Coverage loss, the objective `coverage_loss`: config and computation.

    loss = sum_t sum_s min(weights[t, s], c[t, s]), with c[t] the sum of weights[t'] for t' < t

    At most one per target token. Unlike `coverage_penalty` it does not ask for every slot to be
    attended to.

    Attributes:
      weight: Factor of this term in the loss, lambda in the paper (1 there).
      schedule: How the weight changes; the paper switches it on for the last steps only.
    """

    weight: float = setting(1.0, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    needs: ClassVar[Mapping[str, str]] = NEEDS_ALIGNMENT

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of real target tokens."""
        return token_count(batch)

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the loss summed over the real target tokens."""
        weights = real_weights(output, batch)
        # Over target positions, each without its own: B T S.
        before = jnp.cumsum(weights, axis=-2) - weights
        return jnp.sum(jnp.minimum(weights, before))
