"""What an objective's file defines: one term of the loss, as a config with methods."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Float

from attention_jax.objectives.metrics import Pairs
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.types import Batch, ModelOutput

# What several terms need of a model, by its key in `types.Model.provides`, with how to have it.
NEEDS_ALIGNMENT = {
    "alignment": "a model that attends to source positions (config.model.attention)"
}
NEEDS_REVERSE = {
    "reverse": "a model of both directions, as with config.model.name='bidirectional'"
}


@runtime_checkable
class ObjectiveTerm(Protocol):
    """Loss term: a config whose methods compute one term; each file of objectives has one.

    A term may further have

      needs   what the model must provide, by key (`types.Model.provides`), each with what to do to
              have it, in words
      may_need  all keys that may be among these, where that depends on its fields
      teaches  keys of what it teaches where the model has such a part, which it does not need
      fields  names of what its batches must hold beside the four arrays of every batch

    and carry statistics from step to step, such as a moving baseline, in the training state. It
    then is a `CarryingTerm`.
    """

    weight: float
    schedule: WeightSchedule

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns what the sum is divided by, from the batch alone."""
        ...

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the objective summed over the batch, before its weight and its division."""
        ...


@runtime_checkable
class CarryingTerm(Protocol):
    """Carrying term: one with statistics that go from training step to training step.

    Its `total` has a third argument, what is carried; outside of training that is `start()`.
    """

    def start(self) -> Any:
        """Returns what is carried into the first step, a pytree of arrays."""
        ...

    def follow(self, carried: Any, metrics: Pairs) -> Any:
        """Returns what is carried on, from the (sum, count) pairs of the whole batch."""
        ...

    def measure(self, output: ModelOutput, batch: Batch, carried: Any) -> Pairs:
        """Returns the (sum, count) pairs of a part of a batch that `follow` is to see."""
        ...


def needs_of(term: ObjectiveTerm) -> Mapping[str, str]:
    """Returns what a term needs of a model, by key, with what to do to have it."""
    return getattr(term, "needs", {})


def fields_of(term: ObjectiveTerm) -> set[str]:
    """Returns what a term needs of its batches beside what every batch has."""
    return set(getattr(term, "fields", ()))
