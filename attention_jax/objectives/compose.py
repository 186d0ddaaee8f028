"""Multi-task loss: several objectives as one, found by file name and weighted by the config."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention_jax.configuration import typed_members
from attention_jax.discovery import Parts, module_of
from attention_jax.errors import ConfigError, PartError
from attention_jax.objectives.metrics import Pairs, Totals, means, token_metrics
from attention_jax.objectives.term import CarryingTerm, ObjectiveTerm, fields_of, needs_of
from attention_jax.types import Batch, BidirectionalModel, Model, ModelOutput, swap_sides

OBJECTIVES = Parts(
    "attention_jax.objectives", defines="Term", having=("weight", "schedule", "count", "total")
)
_REVERSE_NLL = "reverse_nll"


@dataclasses.dataclass(frozen=True)
class Objective:
    """Multi-task loss: loss = sum_k weight_k factor_k(step) total_k / count_k.

    Attributes:
      terms: The terms by their config names.
    """

    terms: Mapping[str, ObjectiveTerm]

    def check(self, model: Model) -> None:
        """Checks that the model has what the terms need, and the terms what the model needs.

        Raises:
          ConfigError: If a term needs what the model does not provide, or if the model has a part
            that no term teaches.
        """
        for name, term in self.terms.items():
            for key, remedy in needs_of(term).items():
                if key not in model.provides:
                    raise ConfigError(
                        f"config.objectives.{name}: expected {remedy}, found a model without"
                    )
        if isinstance(model, BidirectionalModel) and _REVERSE_NLL not in self.terms:
            raise ConfigError(
                f"config.objectives: expected {_REVERSE_NLL} for a model of both directions, since "
                f"nothing else teaches the reverse one to write, found {', '.join(self.terms)}"
            )
        # A part that no term reads would keep its initial parameters.
        terms = self.terms.values()
        read = {key for term in terms for key in (*needs_of(term), *getattr(term, "teaches", ()))}
        for key, path in model.provides.items():
            if path is not None and key not in read:
                raise ConfigError(
                    f"{path}: expected config.objectives.{' or '.join(_readers(key))} beside "
                    f"it, found {', '.join(self.terms)}"
                )

    @property
    def fields(self) -> frozenset[str]:
        """What training batches must hold beside the four arrays of every batch, by name."""
        return frozenset(name for term in self.terms.values() for name in fields_of(term))

    @property
    def inherits_by_word(self) -> bool:
        """Whether target words without a link are to get those of their nearest neighbour."""
        # Any one will do, as links are data: there is one set of them for all terms.
        terms = self.terms.values()
        return any(getattr(term, "unaligned", None) == "inherit_by_word" for term in terms)

    @property
    def alignment_shift(self) -> int:
        """How many steps after the one that writes a token its links are taught, and so read."""
        # Without a term that teaches links, attention is read at the step that predicts a token.
        return max((getattr(term, "shift", 0) for term in self.terms.values()), default=0)

    def _measurable(self, batch: Batch) -> dict[str, ObjectiveTerm]:
        # What is known of the training text only, other batches lack: they do without such terms.
        return {name: term for name, term in self.terms.items() if fields_of(term) <= set(batch)}

    def counts(self, batch: Batch) -> dict[str, Float[Array, ""]]:
        """Returns each term's divisor for `batch`; those of parts of a batch add up to it."""
        return {
            name: _number(term, "count", term.count(batch))
            for name, term in self._measurable(batch).items()
        }

    def __call__(
        self,
        output: ModelOutput,
        batch: Batch,
        step: Int[Array, ""] | None = None,
        counts: Mapping[str, Float[Array, ""]] | None = None,
        carried: Mapping[str, Any] | None = None,
    ) -> tuple[Float[Array, ""], Pairs]:
        """Loss: computes it, and the metrics of a batch.

        Args:
          output: The model's output for the batch.
          batch: See `types.Model`; padding rows count nowhere.
          step: The training step, for weights that change with it; None outside of training,
            where every term has its full weight.
          counts: The divisors, if `batch` is a part of the batch that they belong to: the losses
            of the parts, and so their gradients, then add up to those of the whole.
          carried: What terms carry from step to step; as it starts, if not given.

        Returns:
          (loss, metrics): a scalar, and (sum, count) pairs that add up over batches: each term
          as `loss/NAME`, its weight as `weight/NAME` where that changes, and the metrics of
          `token_metrics`, those of a reverse direction as `reverse/NAME`.
        """
        # Of this part: metrics are sums over parts, while the loss is divided by the whole batch.
        own_counts = self.counts(batch)
        counts = own_counts if counts is None else counts
        loss = jnp.zeros(())
        metrics = token_metrics(output, batch)
        carried = self.start() if carried is None else carried
        if "reverse" in output.outputs:
            reverse = token_metrics(output.outputs["reverse"], swap_sides(batch))
            metrics |= {f"reverse/{name}": pair for name, pair in reverse.items()}
        for name, term in self._measurable(batch).items():
            # An argument that other terms do not have.
            kept = (carried[name],) if isinstance(term, CarryingTerm) else ()
            total, weight = _number(term, "total", term.total(output, batch, *kept)), term.weight
            if step is not None and not term.schedule.is_constant:
                weight = weight * term.schedule(step)
                metrics[f"weight/{name}"] = (weight, jnp.ones(()))
            # A batch without a single unit of this term (no aligned word, say) adds nothing.
            loss += weight * total / jnp.maximum(counts[name], 1.0)
            metrics[f"loss/{name}"] = (total, own_counts[name])
            if kept:
                # Statistics are measured, not minimised: no gradient flows through them.
                measured = jax.lax.stop_gradient(term.measure(output, batch, *kept))
                metrics |= {f"{name}/{key}": pair for key, pair in measured.items()}
        return loss, metrics

    def start(self) -> dict[str, Any]:
        """Returns what terms carry into the first step, by their names; mostly nothing."""
        carrying = {n: term for n, term in self.terms.items() if isinstance(term, CarryingTerm)}
        return {name: term.start() for name, term in carrying.items()}

    def follow(self, carried: Mapping[str, Any], metrics: Pairs) -> dict[str, Any]:
        """Returns what terms carry on after a step, given the metrics of its whole batch."""
        return {
            name: self.terms[name].follow(
                value,
                {
                    key.removeprefix(f"{name}/"): pair
                    for key, pair in metrics.items()
                    if key.startswith(f"{name}/")
                },
            )
            for name, value in carried.items()
        }

    def summary(self, totals: Totals) -> dict[str, float]:
        """Turns summed pairs into values to report, `loss` among them.

        Names whose count is zero are left out; so is `loss` where no term was counted.
        """
        values = means(totals)
        # The loss of an epoch is put together from its sums, so that long batches count as they
        # should.
        parts = [
            values.get(f"weight/{name}", term.weight) * values[f"loss/{name}"]
            for name, term in self.terms.items()
            if f"loss/{name}" in values
        ]
        return {"loss": sum(parts), **values} if parts else values


def build_objective(config: Any, where: str = "config.objectives") -> Objective:
    """Builds the objective that a config describes.

    Args:
      config: A mapping, or ConfigDict, from objectives' names to mappings of their fields.
      where: Path of `config` in the whole config, for messages.

    Raises:
      ConfigError: If there is no such objective, or a field is wrong.
    """
    terms = typed_members(OBJECTIVES.config, config, where)
    if not terms:
        known = ", ".join(OBJECTIVES.names())
        raise ConfigError(f"{where}: expected at least one of {known}, found none")
    return Objective(terms)


def _number(term: ObjectiveTerm, method: str, found: Any) -> Any:
    """Returns what a method of a term has returned; raises `PartError` if that is not a number."""
    if not hasattr(found, "dtype") and not isinstance(found, int | float):
        described = type(found).__name__
    elif shape := jnp.shape(found):
        described = f"an array of shape {shape}"
    else:
        return found
    raise PartError(
        f"{module_of(term).__file__}: expected Term.{method} to return one number, the sum over "
        f"the batch, found {described}"
    )


def _readers(key: str) -> list[str]:
    """Lists the objectives that may need something of a model, whatever their fields are."""

    def may_need(term: type) -> Any:
        keys = getattr(term, "may_need", getattr(term, "needs", ()))
        # What depends on fields is a property, of which the class does not tell.
        known = keys if isinstance(keys, Mapping | tuple) else ()
        return (*known, *getattr(term, "teaches", ()))

    needs = {name: may_need(OBJECTIVES.config(name)) for name in OBJECTIVES.names()}
    return [name for name, keys in needs.items() if key in keys]
