"""Global fertility: the attention that each source word gets, as likely as the word predicts."""

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.configuration import setting
from attention_jax.objectives.real_attention import (
    attention_received,
    slots_of_words,
    source_words,
)
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.objectives.term import NEEDS_ALIGNMENT
from attention_jax.types import Batch, ModelOutput

PAPER = "Cohn et al. (2016), section 3.3, on global fertility"


@dataclasses.dataclass(frozen=True)
class Term:
    """Global fertility, the objective `global_fertility`: config and computation.

    loss = -sum_s log Normal(f_s; mu(h_s), sigma^2(h_s) + min_variance), f_s = sum_t weights[t, s]

    The sum is over the real source tokens (the slots that stand for them, where an encoder merges
    tokens), and that of f over all real target tokens. It needs a model that predicts mu and sigma
    from its annotations h: `config.model.predictors.fertility`.

    Attributes:
      weight: Factor of this term in the loss, for each source token; see the deviations.
      schedule: How the weight changes. The paper adds the objective in a second stage, to a
        trained model: `start_steps`.
      min_variance: Added to every variance, in squared words (0 in the paper). A density has no
        upper bound without it: attention that is made as easy to predict as can be, at any cost,
        is rewarded without end, and its gradient grows until nothing else is learned.

    Deviations:
      The sum over sentences is divided by their number of source tokens that count, where the
      paper adds the sum as it is to that of the negative log-likelihoods. The paper's program
      leaves out the first and the last token of a source, which are its boundaries; a source has
      no first boundary here, and EOS, the last one, is left out. The least variance is ours.
    """

    weight: float = setting(1.0, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    min_variance: float = setting(0.1, at_least=0.0)
    needs: ClassVar[Mapping[str, str]] = {
        "fertility": "config.model.predictors.fertility beside it",
        **NEEDS_ALIGNMENT,
    }

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of real source tokens without boundaries."""
        # Rows that fill a batch have no target, and no attention to be explained.
        is_sentence = jnp.any(batch["target_mask"], axis=-1, keepdims=True)
        return jnp.sum(source_words(batch) & is_sentence, dtype=float)

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the negative log-likelihood summed over these tokens."""
        counts = slots_of_words(output, batch)
        fertility = output.outputs["fertility"]
        # Before the density is computed: NaN at padding would come back through its gradient.
        mean = jnp.where(counts, fertility.mean, 0.0)
        log_variance = jnp.where(counts, fertility.log_variance, 0.0)
        if self.min_variance:
            # log(sigma^2 + min_variance), without the exponential that could overflow.
            log_variance = jnp.logaddexp(log_variance, math.log(self.min_variance))
        received = jnp.where(counts, attention_received(output, batch), 0.0)
        # The variance itself is never formed: it could underflow, and be divided by.
        surprise = (received - mean) ** 2 * jnp.exp(-log_variance)
        negative = 0.5 * (math.log(2.0 * math.pi) + log_variance + surprise)
        return jnp.sum(jnp.where(counts, negative, 0.0))
