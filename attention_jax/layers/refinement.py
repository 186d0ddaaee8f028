"""Refinements: what later papers changed in multi-head attention, each a change of its spec.

A refinement file in `layers/refinements` holds `PAPER`, a frozen dataclass `Config`, which is a
`RefinementConfig`, and `refine(config, parts, head) -> MechanismParts`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax

from attention_jax.configuration import NamedConfigs
from attention_jax.discovery import Parts
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.types import Array

REFINEMENTS = Parts("attention_jax.layers.refinements")


class RefinementConfig:
    """Refinement config: what is known of a refinement; each overrides what differs.

    Attributes:
      order: Refinements with lower numbers act first.
      is_positional: Whether it compares positions of queries and slots, for which one sequence has
        to attend to itself.
      excludes: Names of those that it cannot stand beside.
      adds_slot: Whether scores are normalised beside that of a further slot.
      tells_key_bias: Whether scores by products are no longer blind to what is added to all keys
        alike.
    """

    order: ClassVar[int]
    is_positional: ClassVar[bool] = False
    excludes: ClassVar[tuple[str, ...]] = ()
    adds_slot: ClassVar[bool] = False
    tells_key_bias: ClassVar[bool] = False


class Head(NamedTuple):
    """Heads, as a refinement sees them.

    Attributes:
      num_heads: How many ask.
      num_memory_heads: How many have keys and values of their own.
      key_dim: Depth of a head's queries and keys.
      value_dim: Depth of a head's values.
      place: `cross`, `self` or `causal`; see `layers.mechanism`.
      score: What they score with, in words.
      product_scale: What the dot product of query and key is multiplied by, where that is the
        score; None for any other score.
    """

    num_heads: int
    num_memory_heads: int
    key_dim: int
    value_dim: int
    place: str
    score: str
    product_scale: float | None = None

    def index(self) -> Array:
        """Returns the index of the head that is being computed."""
        group = self.num_heads // self.num_memory_heads  # query heads that share one memory head
        return jax.lax.axis_index("memory_heads") * group + jax.lax.axis_index("group")

    def gather(self, array: Array) -> Array:
        """Returns the arrays of all heads on a leading axis, as seen from one of them."""
        # Heads are mapped axes that `MultiHead` names: collectives gather over them.
        gathered = jax.lax.all_gather(jax.lax.all_gather(array, "group"), "memory_heads")
        return gathered.reshape(self.num_heads, *array.shape)  # memory heads, group -> H


def check_refinements(configs: NamedConfigs) -> None:
    """Raises `ValueError` for refinements that cannot stand beside one another."""
    for name, config in configs.items():
        for other in config.excludes:
            if other in configs:
                raise ValueError(f"refinements.{name}: expected no {other!r} beside it, found both")


def positional_refinements(config: Any) -> list[str]:
    """Returns the names of those of a mechanism's refinements that compare positions."""
    refinements = getattr(config, "refinements", {})
    return sorted(name for name, refinement in refinements.items() if refinement.is_positional)


def refinements_telling_key_bias() -> list[str]:
    """Lists the refinements beside which a bias of keys changes weights under any score."""
    return [name for name in REFINEMENTS.names() if REFINEMENTS.config(name).tells_key_bias]


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
    # Not in the order of the config, which must not matter.
    for name in sorted(configs, key=lambda name: configs[name].order):
        if configs[name].is_positional and head.place == "cross":
            raise ValueError(
                f"attention.refinements: expected a sequence that attends to itself for {name!r}, "
                "found one that attends to another"
            )
        # Each wraps what the one before it has returned.
        parts = REFINEMENTS.find(name).refine(configs[name], parts, head)
    return parts


def scale_of_products(head: Head, name: str) -> float:
    """Returns what the dot products of queries and keys are multiplied by.

    Args:
      head: The heads.
      name: The refinement that needs dot products.

    Raises:
      ValueError: If scores are something else.
    """
    if head.product_scale is None:
        raise ValueError(
            "attention.score.name: expected dot products of queries and keys, 'scaled_dot' or "
            f"'luong_dot', for {name}, found {head.score}"
        )
    return head.product_scale


def change_score(
    parts: MechanismParts, change: Callable[..., Array], **parameters: Any
) -> MechanismParts:
    """Changes the score to `change(params, scores, query, memory, positions)`."""
    before = parts.spec.score

    def score(params: Any, query: Array, memory: Any, state: Any, positions: Array) -> Array:
        scores = before(params, query, memory, state, positions)
        return change(params, scores, query, memory, positions)

    spec = dataclasses.replace(parts.spec, score=score)
    return parts._replace(spec=spec, parameters={**parts.parameters, **parameters})
