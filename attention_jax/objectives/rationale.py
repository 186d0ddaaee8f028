"""Rationales: few selected words in few pieces, and REINFORCE for a generator that draws them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attention_jax.configuration import setting
from attention_jax.objectives.metrics import Pairs
from attention_jax.objectives.nll import sentence_count
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.types import Batch, ModelOutput

PAPER = "Lei, Barzilay and Jaakkola (2016), Rationalizing neural predictions, eq. 4 and 5"
_DECAY = 0.9


@dataclasses.dataclass(frozen=True)
class Term:
    """Config and computation of the objective `rationale`.

    omega(z) = sparsity (sum_t z[t] + coherence sum_t |z[t] - z[t-1]|)
    loss = omega(z) + (-log p(y | x, z) + omega(z) - b) log p(z | x)

    where the factor in brackets is held constant. With weight 1 and `nll` beside it, the gradient
    is in expectation that of E_z[-log p(y | x, z) + omega(z)], whatever the baseline b is. Where
    the selection itself has a derivative, as HardKuma has, omega is of expected numbers, and the
    second part is nothing. Of equal probabilities p, omega grows with p only below 1/2 + 1/(4
    coherence), 5/8 with the paper's coherence: above, as HardKuma starts, it pulls towards all.

    Attributes:
      weight: Factor of this term in the loss.
      schedule: How the weight changes during training.
      sparsity: What one selected word costs, in nats.
      coherence: How many times as much a change between words costs.
      baseline: b: a `moving_average` of the cost, carried from step to step, or `none` (the paper).
      decay: Share of the moving average that is kept at each step.

    Deviations:
      The cost is a cross-entropy, for labels, where the paper has squared errors of ratings; its
      program multiplies the loss by 10.
    """

    weight: float = setting(1.0, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    sparsity: float = setting(3e-4, at_least=0.0)
    coherence: float = setting(2.0, at_least=0.0)
    baseline: str = setting("moving_average", choices=("moving_average", "none"))
    decay: float = setting(_DECAY, at_least=0.0, below=1.0)
    needs: ClassVar[Mapping[str, str]] = {
        "selection": "a model that selects words, config.model.name='rationalizer'"
    }

    def __post_init__(self) -> None:
        """Rejects fields that would change nothing."""
        if self.decay != _DECAY and self.baseline != "moving_average":
            raise ValueError(
                f"decay: expected only beside baseline='moving_average', found {self.decay} beside "
                f"{self.baseline!r}"
            )
        if self.coherence != 2.0 and not self.sparsity:
            raise ValueError(
                f"coherence: expected only beside sparsity above 0, found {self.coherence}"
            )

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of documents."""
        return sentence_count(batch)

    def total(
        self, output: ModelOutput, batch: Batch, carried: Any = None
    ) -> Float[Array, ""]:
        """Returns the loss summed over documents; with REINFORCE its gradient is what counts."""
        selection = output.outputs["selection"]
        baseline = self.start() if carried is None else carried
        cost = jax.lax.stop_gradient(self._cost(output, batch))
        advantage = cost - (baseline if self.baseline == "moving_average" else 0.0)
        each = self._penalty(output) + advantage * selection.log_prob
        return jnp.where(_is_document(batch), each, 0.0).sum()

    def _penalty(self, output: ModelOutput) -> Float[Array, "B"]:
        selection = output.outputs["selection"]
        return self.sparsity * (selection.count + self.coherence * selection.changes)

    def _cost(self, output: ModelOutput, batch: Batch) -> Float[Array, "B"]:
        mask = jnp.asarray(batch["target_mask"])
        nll = output.predictions.cross_entropy(jnp.asarray(batch["target"]), mask).sum(-1)
        return nll + self._penalty(output)

    def start(self) -> Any:
        """Returns the moving average before the first step."""
        return jnp.zeros(()) if self.baseline == "moving_average" else ()

    def follow(self, carried: Any, metrics: Pairs) -> Any:
        """Moves the average towards the cost of the batch."""
        if self.baseline != "moving_average":
            return carried
        total, count = metrics["cost"]
        moved = self.decay * carried + (1.0 - self.decay) * total / jnp.maximum(count, 1.0)
        return jnp.where(count > 0, moved, carried)

    def measure(self, output: ModelOutput, batch: Batch, carried: Any) -> Pairs:
        """Measures the share of words that are selected, changes of a document, and its cost."""
        selection, is_real = output.outputs["selection"], _is_document(batch)
        number = jnp.sum(is_real, dtype=float)
        read = (selection.selected > 0).sum((-2, -1))

        def sum_of(values: Array) -> Array:
            return jnp.where(is_real, values, 0).sum(dtype=float)

        return {
            "share": (sum_of(read), sum_of(selection.words)),
            "changes": (sum_of(selection.changes), number),
            "cost": (sum_of(self._cost(output, batch)), number),
        }


def _is_document(batch: Batch) -> Array:
    return jnp.any(batch["target_mask"], axis=-1)
