"""Maximum likelihood: the cross-entropy of the target tokens, with label smoothing."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.configuration import setting
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.types import Batch, ModelOutput

PAPER = "Szegedy et al. (2016), section 7, for label smoothing"


@dataclasses.dataclass(frozen=True)
class Term:
    """Maximum likelihood, the objective `nll`: config and computation.

    Attributes:
      weight: Factor of this term in the loss.
      schedule: How the weight changes during training.
      label_smoothing: Probability eps that is taken from the target token and spread evenly.
      smoothing_over: Over which tokens: the whole `vocabulary`, eps/V each, the target included;
        or the `others`, eps/(V-1) each, only where something is spread.
      reduction: Divide the sum over tokens by the number of tokens (`per_token`, Transformer) or
        of sentences (`per_sentence`, Bahdanau and Luong); learning rates and clipping depend on
        it.
    """

    weight: float = setting(1.0, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    label_smoothing: float = setting(0.0, at_least=0.0, below=1.0)
    smoothing_over: str = setting("vocabulary", choices=("vocabulary", "others"))
    reduction: str = setting("per_token", choices=("per_token", "per_sentence"))

    def __post_init__(self) -> None:
        """Rejects a field that would change nothing."""
        if self.smoothing_over != "vocabulary" and not self.label_smoothing:
            raise ValueError(
                "smoothing_over: expected only beside label_smoothing above 0, found "
                f"{self.smoothing_over!r}"
            )

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of real target tokens, or of real sentences."""
        return token_count(batch) if self.reduction == "per_token" else sentence_count(batch)

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the cross-entropy summed over the real target tokens, in nats."""
        return output.predictions.cross_entropy(
            jnp.asarray(batch["target"]),
            jnp.asarray(batch["target_mask"]),
            label_smoothing=self.label_smoothing,
            smoothing_over=self.smoothing_over,
        ).sum()


def token_count(batch: Batch) -> Float[Array, ""]:
    """Counts the real target tokens, EOS included."""
    return jnp.sum(batch["target_mask"], dtype=float)


def sentence_count(batch: Batch) -> Float[Array, ""]:
    """Counts the rows that hold a target; the rest only fill the batch."""
    return jnp.sum(jnp.any(batch["target_mask"], axis=-1), dtype=float)
