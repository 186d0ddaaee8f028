"""Serial combination: one source after the other is asked, each with what the one before told.

  query_1 = query;  context_k = average(normalizer(score_k(query_k, keys_k)), values_k)
  query_{k+1} = norm_k(query_k + context_k);  context = sum_k context_k

As sublayers of the Transformer, one a source, would be; the first source is asked first.

Deviation: the paper normalises the decoder's own stream between two sources. Here that stream is
the decoder's, which adds the sum of all contexts to it and normalises it once.
"""

import dataclasses
from typing import Any

from attention_jax.configuration import setting
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.several_sources import (
    Ask,
    CombinationConfig,
    Depths,
    EachSource,
    one_for_each,
)
from attention_jax.ops.normalization import layer_norm
from attention_jax.types import Array, Call, Params

PAPER = "Libovický, Helcl and Mareček (2018), Input combination strategies"
_NORMS = "norms"  # of what the sources after the first are asked, by their names


@dataclasses.dataclass(frozen=True)
class Config(CombinationConfig):
    """The serial combination.

    Further fields are those of `layers.several_sources.CombinationConfig`.

    Attributes:
      name: The mechanism.
    """

    name: str = setting("serial")


def build(
    config: Config, query_dim: int, key_dim: int, sources: Depths, **sizes: Any
) -> "Serial":
    """Builds the combination; raises `ValueError` if contexts are not as deep as queries."""
    asking = one_for_each(config, query_dim, sources, sizes)
    for name, mechanism in asking:
        if mechanism.context_dim != query_dim:
            raise ValueError(
                f"attention.score.name: expected contexts as deep as queries ({query_dim}) for "
                f"{config.name!r}, found {mechanism.context_dim} of {name}; multi_head gives them "
                "that depth"
            )
    return Serial(asking, query_dim)


@dataclasses.dataclass(frozen=True)
class Serial(EachSource):
    """The serial combination as pure functions.

    Attributes:
      context_dim: Depth of queries and contexts.
    """

    context_dim: int

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of each source, and of the norm before each but the first."""
        norm = {
            "scale": Parameter.of("scale", query=self.context_dim),
            "bias": Parameter.of("bias", query=self.context_dim),
        }
        norms = {name: norm for name, _ in self.asking[1:]}
        return {**super().parameters, _NORMS: norms}

    def combine(
        self, params: Params, query: Array, ask: Ask, call: Call
    ) -> tuple[Array, dict[str, Array]]:
        """Asks the sources in turn."""
        (name, _), *others = self.asking
        context = total = ask(name, query).context
        for name, _ in others:
            norm = params[_NORMS][name]
            query = layer_norm(query + context, norm["scale"], norm["bias"])
            context = ask(name, query).context
            total = total + context
        return total, {}
