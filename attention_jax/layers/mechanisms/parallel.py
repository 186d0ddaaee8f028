"""Parallel combination: all sources are asked the same, and their contexts are added.

  context[t] = sum_k context_k[t],  context_k[t] = average(normalizer(score_k(query[t], keys_k)))

A source without real slots adds nothing.
"""

import dataclasses
from typing import Any

from attention_jax.configuration import setting
from attention_jax.layers.several_sources import (
    Ask,
    CombinationConfig,
    Depths,
    EachSource,
    one_for_each,
)
from attention_jax.types import Array, Call, Params

PAPER = "Libovický, Helcl and Mareček (2018), Input combination strategies"


@dataclasses.dataclass(frozen=True)
class Config(CombinationConfig):
    """The parallel combination.

    Further fields are those of `layers.several_sources.CombinationConfig`.

    Attributes:
      name: The mechanism.
    """

    name: str = setting("parallel")


def build(
    config: Config, query_dim: int, key_dim: int, sources: Depths, **sizes: Any
) -> "Parallel":
    """Builds the combination; raises `ValueError` if contexts differ in depth."""
    asking = one_for_each(config, query_dim, sources, sizes)
    depths = {name: mechanism.context_dim for name, mechanism in asking}
    if len(set(depths.values())) > 1:
        found = ", ".join(f"{name} {depth}" for name, depth in depths.items())
        raise ValueError(
            f"attention.score.name: expected contexts of one depth for {config.name!r}, found "
            f"{found}; 'concatenated' takes any, and multi_head gives all one depth"
        )
    return Parallel(asking)


@dataclasses.dataclass(frozen=True)
class Parallel(EachSource):
    """The parallel combination as pure functions."""

    @property
    def context_dim(self) -> int:  # type: ignore[override]
        """Depth of the sum."""
        return self.first.context_dim

    def combine(
        self, params: Params, query: Array, ask: Ask, call: Call
    ) -> tuple[Array, dict[str, Array]]:
        """Adds the contexts."""
        (name, _), *others = self.asking
        context = ask(name, query).context
        for name, _ in others:
            context = context + ask(name, query).context
        return context, {}
