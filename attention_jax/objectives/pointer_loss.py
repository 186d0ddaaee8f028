"""Pointer loss: the pointer is to hit the word, or to hand over to the vocabulary."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.configuration import setting
from attention_jax.objectives.nll import token_count
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.types import Batch, ModelOutput

PAPER = "Merity, Xiong, Bradbury and Socher (2017), section 2.5, eq. 7"
_LEAST = 1e-30  # what a share counts as that is too small for float32


@dataclasses.dataclass(frozen=True)
class Term:
    """Pointer loss, the objective `pointer_loss`: config and computation.

    loss = -sum_t log(g_t + sum of the weights with which step t points at its target)

    g is the share that is left for the vocabulary. Without it, a pointer that misses is told only
    by how unlikely the word has become.

    Attributes:
      weight: Factor of this term in the loss; 1 in the paper.
      schedule: How the weight changes.
    """

    weight: float = setting(1.0, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    needs: ClassVar[Mapping[str, str]] = {
        "pointer": "a readout that points, as with config.model.readout.name='pointer_sentinel'"
    }

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of real target tokens."""
        return token_count(batch)

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the loss summed over the real target tokens."""
        predictions = output.predictions
        share = predictions.kept + predictions.pointed_at(batch["target"])  # B T
        loss = -jnp.log(jnp.maximum(share, _LEAST))
        return jnp.where(batch["target_mask"], loss, 0.0).sum()
