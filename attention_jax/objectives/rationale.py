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
_RATE = 0.02  # of the logarithm of the price, at most, at each step
_FURTHEST = 1e3  # how far the price may go from where it starts, up or down


@dataclasses.dataclass(frozen=True)
class Term:
    """Config and computation of the objective `rationale`.

    omega(z) = sparsity (sum_t z[t] + coherence sum_t |z[t] - z[t-1]|)
    loss = omega(z) + (-log p(y | x, z) + omega(z) - b) log p(z | x)

    Lagrangian relaxation: with a target share, the first sparsity is a price that follows the share
    of words which each batch selects, from the step on at which the schedule starts,

    price <- price exp(0.02 e);   e = share / target - 1, at most 1

    and changes keep theirs. In the loss the factor in brackets is held constant. With weight 1 and
    `nll` beside it, the gradient is in expectation that of E_z[-log p(y | x, z) + omega(z)],
    whatever the baseline b is. Where the selection itself has a derivative, as HardKuma has, omega
    is of expected numbers, and the second part is nothing. Of equal probabilities p, omega grows
    with p only below 1/2 + 1/(4 coherence), 5/8 with the paper's coherence: above, as HardKuma
    starts, it pulls towards all. A coherence of 1/2 or less never does.

    Attributes:
      weight: Factor of this term in the loss.
      schedule: How the weight changes during training.
      sparsity: What one selected word costs, in nats; with a target share, at first.
      coherence: How many times as much a change between words costs.
      target_share: Share of the words that is to be selected, whatever the price; 0 for a fixed
        price. A fixed one easily ends with all words or with none.
      baseline: b: a `moving_average` of the cost, carried from step to step, or `none` (the paper).
      decay: Share of the moving average that is kept at each step.

    Source of the relaxation:
      Bastings, Aziz and Titov (2019), section 4.2, who have a target for the changes, too.

    Deviations:
      The cost is a cross-entropy, for labels, where the paper has squared errors of ratings; its
      program multiplies the loss by 10.
    """

    weight: float = setting(1.0, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    sparsity: float = setting(3e-4, at_least=0.0)
    coherence: float = setting(2.0, at_least=0.0)
    target_share: float = setting(0.0, at_least=0.0, below=1.0)
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
        if self.target_share and not self.sparsity:
            raise ValueError(
                f"target_share: expected only beside sparsity above 0, found {self.target_share}"
            )

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of documents."""
        return sentence_count(batch)

    def total(
        self, output: ModelOutput, batch: Batch, carried: Any = None
    ) -> Float[Array, ""]:
        """Returns the loss summed over documents; with REINFORCE its gradient is what counts."""
        selection = output.outputs["selection"]
        named = self._named(self.start() if carried is None else carried)
        advantage = jax.lax.stop_gradient(self._cost(output, batch, named))
        if self.baseline == "moving_average":
            advantage -= named["baseline"]
        each = self._penalty(output, named) + advantage * selection.log_prob
        return jnp.where(_is_document(batch), each, 0.0).sum()

    def _penalty(self, output: ModelOutput, named: Mapping[str, Any]) -> Float[Array, "B"]:
        selection = output.outputs["selection"]
        price = named.get("price", self.sparsity)
        return price * selection.count + self.sparsity * self.coherence * selection.changes

    def _cost(
        self, output: ModelOutput, batch: Batch, named: Mapping[str, Any]
    ) -> Float[Array, "B"]:
        return self._nll(output, batch) + self._penalty(output, named)

    def _nll(self, output: ModelOutput, batch: Batch) -> Float[Array, "B"]:
        mask = jnp.asarray(batch["target_mask"])
        return output.predictions.cross_entropy(jnp.asarray(batch["target"]), mask).sum(-1)

    def start(self) -> Any:
        """Returns the moving average and the price before the first step, whichever there are."""
        baseline = jnp.zeros(()) if self.baseline == "moving_average" else ()
        if not self.target_share:
            return baseline
        price, steps = jnp.full((), self.sparsity), jnp.zeros((), jnp.int32)
        return {"baseline": baseline, "price": price, "steps": steps}

    def _named(self, carried: Any) -> Mapping[str, Any]:
        """Returns what is carried by name; a moving average alone is carried without one."""
        return carried if self.target_share else {"baseline": carried}

    def follow(self, carried: Any, metrics: Pairs) -> Any:
        """Moves the average towards the cost of the batch, and the price by its share of words."""
        moved, named = {}, self._named(carried)
        (total, count), (read, words) = metrics["cost"], metrics["share"]
        if self.baseline == "moving_average":
            cost = total / jnp.maximum(count, 1.0)
            moved["baseline"] = self.decay * named["baseline"] + (1.0 - self.decay) * cost
        if self.target_share:
            excess = jnp.minimum(read / jnp.maximum(words, 1.0) / self.target_share - 1.0, 1.0)
            rate = jnp.where(named["steps"] < self.schedule.start_steps, 0.0, _RATE)
            price = named["price"] * jnp.exp(rate * excess)
            least, most = self.sparsity / _FURTHEST, self.sparsity * _FURTHEST
            moved |= {"price": jnp.clip(price, least, most), "steps": named["steps"] + 1}
        # A batch without documents teaches nothing.
        kept = {name: jnp.where(count > 0, value, named[name]) for name, value in moved.items()}
        found = {**named, **kept}
        return found if self.target_share else found["baseline"]

    def measure(self, output: ModelOutput, batch: Batch, carried: Any) -> Pairs:
        """Measures the share of words that are selected, changes and cost of a document.

        With a target share the price, too, and `cost_at_target`, by which steps can be compared
        whatever the price was: -log p(y | x, z) + max(0, share / target - 1), of each document.
        """
        named = self._named(carried)
        selection, is_real = output.outputs["selection"], _is_document(batch)
        number = jnp.sum(is_real, dtype=float)
        read = (selection.selected > 0).sum((-2, -1))

        def sum_of(values: Array) -> Array:
            return jnp.where(is_real, values, 0).sum(dtype=float)

        measured = {
            "share": (sum_of(read), sum_of(selection.words)),
            "changes": (sum_of(selection.changes), number),
            "cost": (sum_of(self._cost(output, batch, named)), number),
        }
        if self.target_share:
            measured["price"] = (named["price"] * number, number)
            excess = read / jnp.maximum(selection.words, 1.0) / self.target_share - 1.0
            total = self._nll(output, batch) + jnp.maximum(excess, 0.0)
            measured["cost_at_target"] = (sum_of(total), number)
        return measured


def _is_document(batch: Batch) -> Array:
    return jnp.any(batch["target_mask"], axis=-1)
