"""Attention patterns: which slots a query may read, where that is not everywhere.

A pattern answers queries by handing each of them, or each block of them, the part of the memory
that they may read: `LocalWindow` (`ops.windows`) and `Band` (`ops.bands`) are two. It is given the
function that answers queries about a memory, and calls that for what it has cut out.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax
from jaxtyping import Array, Bool, Float

from attention_jax.types import AttentionOutput, Call, Leaf, Memory, Params


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Queries:
    """Queries: those that are answered at once, with their positions, mask and bias.

    Attributes:
      vectors: `*B T Dq`, prepared.
      positions: `T`, the index of each in its sequence; inside windows, where each query has a
        memory of its own, `T 1` beside vectors `*B T 1 Dq`; inside blocks `N Q`, beside
        `*B N Q Dq`.
      mask: `*B T S`, which restricts the memory's own; None for no restriction.
      bias: `*B T S`, added to the scores; None for none.
      call: Mode and key.
      is_fused: Whether a faster way to the contexts may be taken beside that to the weights.
    """

    vectors: Leaf
    positions: Leaf
    mask: Leaf | None = None
    bias: Leaf | None = None
    call: Call = Call()
    is_fused: bool = dataclasses.field(default=False, metadata={"static": True})

    def within(self, memory: Memory) -> Bool[Array, "..."]:
        """Returns which slots may be read, `*B T S` or what broadcasts to it."""
        # *B S -> *B 1 S: padding is the same for every query.
        reach = memory.mask[..., None, :]
        return reach if self.mask is None else reach & self.mask

    def added_to(self, scores: Float[Array, "*B T S"]) -> Float[Array, "*B T S"]:
        """Returns scores with the bias."""
        return scores if self.bias is None else scores + self.bias


Answer = Callable[[Any, Params, Queries, Memory], AttentionOutput]


@runtime_checkable
class AttentionPattern(Protocol):
    """Attention pattern: what restricts queries to a part of the memory.

    Attributes:
      is_causal: Whether no query reads a slot after its own position, whatever the mask.
    """

    is_causal: bool

    def answer(
        self, answer: Answer, spec: Any, params: Params, queries: Queries, memory: Memory
    ) -> AttentionOutput:
        """Answers queries within the pattern.

        Args:
          answer: (spec, params, queries, memory) -> the output of attention everywhere.
          spec: The mechanism, without a pattern.
          params: Its parameters.
          queries: What asks.
          memory: All slots.

        Returns:
          Context `*B T Dv`, weights and scores `*B T S`, which are zero outside the pattern.
        """
        ...
