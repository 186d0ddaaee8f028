"""Several objectives as one loss, found by file name and weighted by the config."""

import dataclasses
import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention_jax.configuration import plain, typed, unknown_name
from attention_jax.errors import ConfigError
from attention_jax.objectives.metrics import Pairs, Totals, means, token_metrics
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.types import Batch, BidirectionalModel, Model, ModelOutput, swap_sides

_PACKAGE = "attention_jax.objectives"
_REVERSE_NLL = "reverse_nll"


@runtime_checkable
class Term(Protocol):
    """What a file of this package defines: a config whose methods compute the objective."""

    weight: float
    schedule: WeightSchedule
    needs_alignment: ClassVar[bool]
    needs_links: ClassVar[bool]
    needs_reverse: ClassVar[bool]

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns what the sum is divided by, from the batch alone."""
        ...

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the objective summed over the batch, before its weight and its division."""
        ...


@dataclasses.dataclass(frozen=True)
class Objective:
    """A weighted sum of terms: loss = sum_k weight_k factor_k(step) total_k / count_k.

    Attributes:
      terms: The terms by their config names.
    """

    terms: Mapping[str, Term]

    def check(self, model: Model) -> None:
        """Checks that the model has what the terms need, and the terms what the model needs.

        A term may say with `needs_output` which optional field of the model's output it reads,
        and which config fills it.

        Raises:
          ConfigError: If a term needs attention to source positions, a reverse direction or an
            output and there is none, or if the model has a part that no term teaches.
        """
        for name, term in self.terms.items():
            self._check_term(name, term, model)
        if isinstance(model, BidirectionalModel) and _REVERSE_NLL not in self.terms:
            raise ConfigError(
                f"config.objectives: expected {_REVERSE_NLL} for a model of both directions, since "
                f"nothing else teaches the reverse one to write, found {', '.join(self.terms)}"
            )
        read = {getattr(term, "needs_output", (None, ""))[0] for term in self.terms.values()}
        for field, path in _offered(model).items():
            if path is not None and field not in read:
                raise ConfigError(
                    f"{path}: expected config.objectives.{' or '.join(_readers(field))} beside "
                    f"it, found {', '.join(self.terms)}"
                )

    @staticmethod
    def _check_term(name: str, term: Term, model: Model) -> None:
        where = f"config.objectives.{name}"
        if term.needs_reverse and not isinstance(model, BidirectionalModel):
            raise ConfigError(
                f"{where}: expected a model of both directions, as with "
                "config.model.name='bidirectional', found one from source to target only"
            )
        field, remedy = getattr(term, "needs_output", (None, ""))
        if field is not None and field not in _offered(model):
            raise ConfigError(f"{where}: expected {remedy} beside it, found a model without")
        if term.needs_alignment and not model.is_aligning:
            raise ConfigError(
                f"{where}: expected a model that attends to source positions, "
                "found one whose config.model.attention does not"
            )
        if getattr(term, "shift", 0) and not getattr(model, "knows_last_word", True):
            raise ConfigError(
                f"{where}.step: expected 'writes' beside a decoder that attends before it reads "
                "the last word (bahdanau but for its variant 'groundhog', gnmt but for 'gnmt_v2'), "
                f"found {term.step!r}"
            )

    @property
    def needs_links(self) -> bool:
        """Whether training batches must hold links between source and target tokens."""
        return any(term.needs_links for term in self.terms.values())

    @property
    def inherits_by_word(self) -> bool:
        """Whether target words without a link are to get those of their nearest neighbour."""
        terms = self.terms.values()
        return any(getattr(term, "unaligned", None) == "inherit_by_word" for term in terms)

    @property
    def alignment_shift(self) -> int:
        """How many steps after the one that writes a token its links are taught, and so read."""
        return max((getattr(term, "shift", 0) for term in self.terms.values()), default=0)

    def _measurable(self, batch: Batch) -> dict[str, Term]:
        # Links are known of the training text only: other batches do without these terms.
        has = "links" in batch
        return {name: term for name, term in self.terms.items() if has or not term.needs_links}

    def counts(self, batch: Batch) -> dict[str, Float[Array, ""]]:
        """Returns each term's divisor for `batch`; those of parts of a batch add up to it."""
        return {name: term.count(batch) for name, term in self._measurable(batch).items()}

    def __call__(
        self,
        output: ModelOutput,
        batch: Batch,
        step: Int[Array, ""] | None = None,
        counts: Mapping[str, Float[Array, ""]] | None = None,
    ) -> tuple[Float[Array, ""], Pairs]:
        """Computes the loss and the metrics of a batch.

        Args:
          output: The model's output for the batch.
          batch: See `types.Model`; padding rows count nowhere.
          step: The training step, for weights that change with it; None outside of training,
            where every term has its full weight.
          counts: The divisors, if `batch` is a part of the batch that they belong to: the losses
            of the parts, and so their gradients, then add up to those of the whole.

        Returns:
          (loss, metrics): a scalar, and (sum, count) pairs that add up over batches: each term
          as `loss/NAME`, its weight as `weight/NAME` where that changes, and the metrics of
          `token_metrics`, those of a reverse direction as `reverse/NAME`.
        """
        own_counts = self.counts(batch)
        counts = own_counts if counts is None else counts
        loss = jnp.zeros((), jnp.float32)
        metrics = token_metrics(output, batch)
        if output.reverse is not None:
            reverse = token_metrics(output.reverse, swap_sides(batch))
            metrics |= {f"reverse/{name}": pair for name, pair in reverse.items()}
        for name, term in self._measurable(batch).items():
            total, weight = term.total(output, batch), term.weight
            if step is not None and not term.schedule.is_constant:
                weight = weight * term.schedule(step)
                metrics[f"weight/{name}"] = (weight, jnp.float32(1.0))
            # A batch without a single unit of this term (no aligned word, say) adds nothing.
            loss += weight * total / jnp.maximum(counts[name], 1.0)
            metrics[f"loss/{name}"] = (total, own_counts[name])
        return loss, metrics

    def summary(self, totals: Totals) -> dict[str, float]:
        """Turns summed pairs into values to report, `loss` among them.

        Names whose count is zero are left out; so is `loss` where no term was counted.
        """
        values = means(totals)
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
    terms: dict[str, Term] = {
        name: typed(_find(name, where), _group(fields, f"{where}.{name}"), f"{where}.{name}")
        for name, fields in _group(config, where).items()
    }
    if not terms:
        raise ConfigError(f"{where}: expected at least one of {', '.join(names())}, found none")
    return Objective(terms)


def names() -> list[str]:
    """Lists the objectives that exist: the files of this package that define a `Term`."""
    package = importlib.import_module(_PACKAGE)
    found = (module.name for module in pkgutil.iter_modules(package.__path__))
    return sorted(name for name in found if _term(name) is not None)


def _offered(model: Model) -> Mapping[str, str | None]:
    return getattr(model, "optional_outputs", {})


def _readers(field: str) -> list[str]:
    """Lists the objectives that read an optional field of a model's output."""
    return [name for name in names() if field in getattr(_term(name), "needs_output", ())]


def _group(value: Any, where: str) -> dict[str, Any]:
    if dataclasses.is_dataclass(value):
        value = plain(value)
    if not hasattr(value, "items"):
        raise ConfigError(f"{where}: expected a group of fields, found {value!r}")
    return dict(value.items())


def _find(name: str, where: str) -> type:
    cls = _term(name)
    if cls is None:
        raise ConfigError(unknown_name(f"{where}.{name}", name, names()))
    return cls


def _term(name: str) -> type | None:
    path = f"{_PACKAGE}.{name}"
    if path == __name__ or not name.isidentifier() or importlib.util.find_spec(path) is None:
        return None
    return getattr(importlib.import_module(path), "Term", None)
