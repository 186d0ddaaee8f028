"""Bilingual symmetry: what attends to what should not depend on the direction of translation."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.configuration import setting
from attention_jax.objectives.nll import sentence_count, token_count
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.objectives.term import NEEDS_ALIGNMENT, NEEDS_REVERSE
from attention_jax.types import Batch, ModelOutput

PAPER = "Cohn et al. (2016), on bilingual symmetry"


@dataclasses.dataclass(frozen=True)
class Term:
    """Bilingual symmetry, the objective `bilingual_symmetry`: config and computation.

    loss = -tr(A B) = -sum_t sum_s A[t, s] B[s, t]

    A is `T S`, the forward model's attention, of which row t predicts target token t; B is `S T`,
    the reverse model's, of which column t is target token t as it is read. EOS is a token of both
    sides like any other. BOS is one of neither: a model is fed with it, but neither predicts it
    nor attends to it, so that row and column t are the same token.

    The trace is at most min(T, S). Where T = S, only one and the same one-to-one alignment in both
    matrices attains that.

    Attributes:
      weight: Factor of this term in the loss, gamma in the paper.
      schedule: How the weight changes during training. The paper trains both models separately
        before it adds this term; `start_steps` comes near to that, in one run with one schedule
        of the learning rate and one clipping of the gradient for both.
      reduction: Divide the sum over sentences by the number of target tokens (`per_token`) or of
        sentences (`per_sentence`). With the latter in `nll` and `reverse_nll` too, the loss is the
        paper's, averaged over sentences; with `per_token`, each term is divided by another count.
    """

    weight: float = setting(1.0, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    reduction: str = setting("per_token", choices=("per_token", "per_sentence"))
    needs: ClassVar[Mapping[str, str]] = {
        **NEEDS_REVERSE,
        **NEEDS_ALIGNMENT,
        "slot_for_each_token": "an encoder whose memory has a slot for each token",
    }

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of real target tokens, or of real sentences."""
        return token_count(batch) if self.reduction == "per_token" else sentence_count(batch)

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the negative trace summed over the real sentences."""
        real = batch["target_mask"][..., :, None] & batch["source_mask"][..., None, :]  # B T S
        forward = output.attention.weights
        # B S T -> B T S: the trace is then a sum of products, place by place.
        reverse = jnp.swapaxes(output.outputs["reverse"].attention.weights, -1, -2)
        # Each by itself, since what stands at padding may be NaN.
        return -jnp.sum(jnp.where(real, forward, 0.0) * jnp.where(real, reverse, 0.0))
