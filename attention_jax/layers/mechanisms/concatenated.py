"""Concatenated contexts: all sources are asked the same, and what they answer stands side by side.

  context[t] = [context_1[t]; ...; context_K[t]],  context_k[t] = average(... score_k ..., values_k)

Over `local_p`, with the decoder of Luong et al., this is the multi-source attention of Zoph and
Knight: h~ = tanh(W_c [h; c_1; c_2]), with a window of its own in each source.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.several_sources import (
    Ask,
    CombinationConfig,
    Depths,
    EachSource,
    one_for_each,
)
from attention_jax.types import Array, Call, Params

PAPER = "Zoph and Knight (2016), section 4; Libovický and Helcl (2017), section 3.1"


@dataclasses.dataclass(frozen=True)
class Config(CombinationConfig):
    """Concatenated contexts.

    Further fields are those of `layers.several_sources.CombinationConfig`.

    Attributes:
      name: The mechanism.
    """

    name: str = setting("concatenated")


def build(
    config: Config, query_dim: int, key_dim: int, sources: Depths, **sizes: Any
) -> "Concatenated":
    """Builds the combination, for sources of any depths."""
    return Concatenated(one_for_each(config, query_dim, sources, sizes))


@dataclasses.dataclass(frozen=True)
class Concatenated(EachSource):
    """Concatenated contexts as pure functions."""

    @property
    def context_dim(self) -> int:  # type: ignore[override]
        """The sum of the contexts' depths."""
        return sum(mechanism.context_dim for _, mechanism in self.asking)

    def combine(
        self, params: Params, query: Array, ask: Ask, call: Call
    ) -> tuple[Array, dict[str, Array]]:
        """Puts the contexts side by side."""
        contexts = [ask(name, query).context for name, _ in self.asking]
        return jnp.concatenate(contexts, axis=-1), {}
