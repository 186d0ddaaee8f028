"""Final coverage: the length of what remains to be translated of each source word."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.configuration import setting
from attention_jax.objectives.nll import token_count
from attention_jax.objectives.real_attention import real_slots
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.ops.summation import upcast
from attention_jax.types import Batch, ModelOutput

PAPER = "Mi, Sankaran, Wang and Ittycheriah (2016), Coverage embedding models: final coverage"


@dataclasses.dataclass(frozen=True)
class Term:
    """Final coverage, the objective `final_coverage`: config and computation.

    loss = sum_s |c_T[s]|, with c_T[s] the coverage embedding of source token s after the last
    real target token, EOS, has been written

    Over all real source tokens, their EOS included. It needs the attention `coverage_embedding`.

    Attributes:
      weight: Factor of this term in the loss; the sum over sentences is divided by their number
        of target tokens, so that it is the factor beside a sum of negative log-likelihoods.
      schedule: How the weight changes during training.

    Deviations:
      The norm is Euclidean, and the default weight is 1: both are choices of ours, for neither
      could be checked against the paper.
    """

    weight: float = setting(1.0, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    needs: ClassVar[Mapping[str, str]] = {
        "coverage": "config.model.attention.name='coverage_embedding' beside it"
    }

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of real target tokens."""
        return token_count(batch)

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the norms summed over the real source tokens of the real sentences."""
        is_real = real_slots(output, batch)
        left = jnp.where(is_real[..., None], upcast(output.outputs["coverage"]), 0.0)
        squares = jnp.sum(left**2, axis=-1)
        # The root has no derivative at zero; a token without anything left asks for nothing.
        is_left = squares > 0
        return jnp.sum(jnp.where(is_left, jnp.sqrt(jnp.where(is_left, squares, 1.0)), 0.0))
