"""Hierarchical combination: each source is asked by itself, and then the contexts are attended to.

  context_k[t] = average(normalizer(score_k(query[t], keys_k)), values_k)
  shares[t, k] = softmax over k (over(query[t], context_k[t] V_k))
  context[t]   = sum_k shares[t, k] (context_k[t] U_k)

The second attention is the flat combination of sources of one slot each, their contexts; a source
without real slots has no share. `aux["shares"]` are its weights, in the order of the sources.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.mechanism import MECHANISMS, Traits
from attention_jax.layers.mechanisms import flat
from attention_jax.layers.several_sources import (
    Ask,
    CombinationConfig,
    Depths,
    EachSource,
    check_asks_one,
    is_read,
    one_for_each,
)
from attention_jax.types import Array, Call, Params

PAPER = "Libovický and Helcl (2017), section 3.3; Libovický, Helcl and Mareček (2018) for heads"
_OVER = "over"


@dataclasses.dataclass(frozen=True)
class Config(CombinationConfig):
    """The hierarchical combination.

    Further fields are those of `layers.several_sources.CombinationConfig`.

    Attributes:
      name: The mechanism.
      over: The score of the contexts, with its heads.
    """

    name: str = setting("hierarchical")
    over: Any = setting({"name": "bahdanau"}, named=MECHANISMS.config)

    def __post_init__(self) -> None:
        """Rejects a combination of combinations."""
        super().__post_init__()
        check_asks_one("over", self.over)


def build(
    config: Config, query_dim: int, key_dim: int, sources: Depths, **sizes: Any
) -> "Hierarchical":
    """Builds the combination.

    Raises:
      ValueError: If a score does not serve.
    """
    asking = one_for_each(config, query_dim, sources, sizes)
    contexts = tuple((name, mechanism.context_dim) for name, mechanism in asking)
    try:
        over = flat.build(
            flat.Config(score=config.over), query_dim, contexts[0][1], contexts, **sizes
        )
    except ValueError as error:
        raise ValueError(str(error).replace("attention.score", "attention.over")) from None
    return Hierarchical(asking, over)


@dataclasses.dataclass(frozen=True)
class Hierarchical(EachSource):
    """The hierarchical combination as pure functions.

    Attributes:
      over: How contexts are attended to.
    """

    over: flat.Flat

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """What may be relied on: the contexts are compared with the query."""
        return super().traits._replace(reads_query=True)

    @property
    def context_dim(self) -> int:  # type: ignore[override]
        """Depth of the common space of the contexts."""
        return self.over.context_dim

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of each source, and of the second attention."""
        return {**super().parameters, _OVER: self.over.parameters}

    def combine(
        self, params: Params, query: Array, ask: Ask, call: Call
    ) -> tuple[Array, dict[str, Array]]:
        """Attends to the contexts: each query has a memory of its own, with a slot a source."""
        answers = {name: ask(name, query) for name, _ in self.asking}
        slots = {
            name: Encoded(answer.context[..., None, :], is_read(answer)[..., None])  # *B T 1 D
            for name, answer in answers.items()
        }
        memory = self.over.make_memory(params[_OVER], slots)
        output, _ = self.over.attend(params[_OVER], query[..., None, :], memory, call=call)
        _, *others = answers
        shares = [output.weights, *(output.aux[f"{name}/weights"] for name in others)]
        # *B T 1 1 of each source -> *B T K
        return output.context[..., 0, :], {"shares": jnp.concatenate(shares, -1)[..., 0, :]}
