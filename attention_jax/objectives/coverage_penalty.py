"""Doubly stochastic attention: the squared distance of each word's total attention from one."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.configuration import setting
from attention_jax.objectives.nll import token_count
from attention_jax.objectives.real_attention import (
    attention_received,
    real_slots,
    slots_of_words,
)
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.objectives.term import NEEDS_ALIGNMENT
from attention_jax.types import Batch, ModelOutput

PAPER = (
    "Xu et al. (2015), section 4.2.1, eq. 14 (doubly stochastic attention), of an image, which has "
    "no boundaries; Cohn et al. (2016), as the option `coverage` of their program"
)


@dataclasses.dataclass(frozen=True)
class Term:
    """Doubly stochastic attention, the objective `coverage_penalty`: config and computation.

    loss = sum_s (1 - sum_t weights[t, s])^2, over the real slots and the real target tokens

    The slot of the source's EOS is one of them unless `with_boundaries` is false.

    Attributes:
      weight: Factor of this term in the loss, C in Cohn et al.; the sum over sentences is divided
        by their number of target tokens.
      schedule: How the weight changes during training.
      with_boundaries: Whether the boundaries of the source are to be attended to once, too. False
        is Cohn et al.'s: their program leaves out both, BOS, which a source has not here, and EOS.
    """

    weight: float = setting(1.0, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    with_boundaries: bool = setting(True)
    needs: ClassVar[Mapping[str, str]] = NEEDS_ALIGNMENT

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of real target tokens."""
        return token_count(batch)

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the penalty summed over the real sentences."""
        received = attention_received(output, batch)
        chosen = real_slots if self.with_boundaries else slots_of_words
        counts = chosen(output, batch)
        # Padding has received nothing, which is no fault.
        return jnp.sum(jnp.where(counts, (1.0 - received) ** 2, 0.0))
