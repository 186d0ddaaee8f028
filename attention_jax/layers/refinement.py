"""Refinements: what later papers changed in multi-head attention, each a change of its spec.

A refinement file in `layers/refinements` holds `PAPER`, `ORDER` (lower ones act first), a frozen
dataclass `Config` and `refine(config, parts, head) -> MechanismParts`. One that compares positions
of queries and slots says so by `IS_POSITIONAL = True`: it needs one sequence that attends to
itself. `EXCLUDES` names those that it cannot stand beside. With `TELLS_KEY_BIAS = True` scores by
products are no longer blind to what is added to all keys alike.
"""

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import jax

from attention_jax.configuration import NamedConfigs
from attention_jax.discovery import Parts
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.types import Array

REFINEMENTS = Parts("attention_jax.layers.refinements")


class Head(NamedTuple):
    """What a refinement is told of the heads.

    Attributes:
      num_heads: How many ask.
      num_memory_heads: How many have keys and values of their own.
      key_dim: Depth of a head's queries and keys.
      value_dim: Depth of a head's values.
      place: `cross`, `self` or `causal`; see `layers.mechanism`.
      score: What they score with, in words.
    """

    num_heads: int
    num_memory_heads: int
    key_dim: int
    value_dim: int
    place: str
    score: str

    def index(self) -> Array:
        """Returns the number of the head that is being computed."""
        group = self.num_heads // self.num_memory_heads
        return jax.lax.axis_index("memory_heads") * group + jax.lax.axis_index("group")

    def gather(self, array: Array) -> Array:
        """Returns the arrays of all heads, on a leading axis."""
        gathered = jax.lax.all_gather(jax.lax.all_gather(array, "group"), "memory_heads")
        return gathered.reshape(self.num_heads, *array.shape)


def check_refinements(configs: NamedConfigs) -> None:
    """Raises `ValueError` for refinements that cannot stand beside one another."""
    for name in configs:
        for other in getattr(REFINEMENTS.find(name), "EXCLUDES", ()):
            if other in configs:
                raise ValueError(f"refinements.{name}: expected no {other!r} beside it, found both")


def positional_refinements(config: Any) -> list[str]:
    """Returns the names of those of a mechanism's refinements that compare positions."""
    names = getattr(config, "refinements", {})
    return sorted(name for name in names if _is_positional(REFINEMENTS.find(name)))


def refinements_telling_key_bias() -> list[str]:
    """Lists the refinements beside which a bias of keys changes weights under any score."""
    names = REFINEMENTS.names()
    return [name for name in names if getattr(REFINEMENTS.find(name), "TELLS_KEY_BIAS", False)]


def without_positions(config: Any) -> Any:
    """Returns a mechanism's config without the refinements that compare positions.

    What else would change nothing without them goes with them.
    """
    positional = positional_refinements(config)
    return config.without_refinements(positional) if positional else config


def refine(configs: NamedConfigs, parts: MechanismParts, head: Head) -> MechanismParts:
    """Applies refinements in their order.

    Raises:
      ValueError: If one does not fit.
    """
    for name in sorted(configs, key=lambda name: REFINEMENTS.find(name).ORDER):
        module = REFINEMENTS.find(name)
        if _is_positional(module) and head.place == "cross":
            raise ValueError(
                f"attention.refinements: expected a sequence that attends to itself for {name!r}, "
                "found one that attends to another"
            )
        parts = module.refine(configs[name], parts, head)
    return parts


def _is_positional(module: ModuleType) -> bool:
    return getattr(module, "IS_POSITIONAL", False)


def product_scale(parts: MechanismParts, head: Head, name: str) -> float:
    """Returns what the dot products of queries and keys are multiplied by.

    Args:
      parts: The mechanism.
      head: Its heads.
      name: The refinement that needs dot products.

    Raises:
      ValueError: If scores are something else.
    """
    if parts.product_scale is None:
        raise ValueError(
            "attention.score.name: expected dot products of queries and keys, 'scaled_dot' or "
            f"'luong_dot', for {name}, found {head.score}"
        )
    return parts.product_scale


def change_score(
    parts: MechanismParts, change: Callable[..., Array], **parameters: Any
) -> MechanismParts:
    """Returns parts whose scores are `change(params, scores, query, memory, positions)`."""
    before = parts.spec.score

    def score(params: Any, query: Array, memory: Any, state: Any, positions: Array) -> Array:
        scores = before(params, query, memory, state, positions)
        return change(params, scores, query, memory, positions)

    spec = dataclasses.replace(parts.spec, score=score, fused=None)
    return parts._replace(spec=spec, parameters={**parts.parameters, **parameters})
