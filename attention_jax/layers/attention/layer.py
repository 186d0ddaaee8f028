"""Attention as a Linen layer, and how a mechanism is built from its config."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from flax import linen as nn
from jaxtyping import Bool, Float, Int

from attention_jax.layers.attention.multi_head import MultiHead
from attention_jax.layers.attention.single_head import OneSource, SingleHead
from attention_jax.layers.encoder import sequence
from attention_jax.layers.mechanism import Mechanism, MechanismConfig, MechanismParts, build_parts
from attention_jax.layers.parameters import Initialization, declare
from attention_jax.types import Array, AttentionOutput, State


def build_mechanism(
    config: MechanismConfig, query_dim: int, key_dim: int, value_dim: int, **sizes: Any
) -> Mechanism:
    """Attention mechanism: builds the one that a config describes, with its heads.

    Args:
      config: The mechanism's own config dataclass.
      query_dim: Depth of the queries.
      key_dim: Depth of the keys.
      value_dim: Depth of the values.
      **sizes: What some mechanisms need beside these; see `layers.mechanism`.

    Raises:
      ValueError: If a depth cannot be split into the heads, or a size is missing.
    """
    num_heads = getattr(config, "num_heads", 1)
    # Whatever decides on what is built, and can be compared and hashed.
    made_of = (config, query_dim, key_dim, value_dim, tuple(sorted(sizes.items())))
    if not config.projects_heads:
        depths = {"query": query_dim, "key": key_dim, "value": value_dim}
        for name, depth in depths.items():
            if depth % num_heads:
                raise ValueError(
                    f"attention.num_heads: expected a divisor of the {name} depth {depth}, "
                    f"found {num_heads}"
                )
        # Each head is built for its part of the depths; those that project read them whole.
        query_dim, key_dim = query_dim // num_heads, key_dim // num_heads
    made = build_parts(
        config, query_dim, key_dim, {"value_dim": value_dim, "place": "cross", **sizes}
    )
    # A file that has built a whole `Mechanism` has chosen its heads itself.
    if isinstance(made, MechanismParts):
        depth = value_dim if made.context_dim is None else made.context_dim
        made = SingleHead(made, depth) if num_heads == 1 else MultiHead(made, depth, num_heads)
    if isinstance(made, OneSource):
        # So that two that were built alike are equal, which their closures would not be.
        made = dataclasses.replace(made, built=(made_of, made.parts))
    return made


class Attention(nn.Module):
    """Attention layer: any mechanism as a Linen module, for your own models.

    Attributes:
      config: A mechanism's config, such as `mechanisms.bahdanau.Config(attention_dim=64)`.
      initialization: How its parameters start.
      sizes: What some mechanisms need beside the depths of their arrays; see `layers.mechanism`.
        A `place` only describes the call and restricts nothing, as `query_mask` does; but a
        `sliding_window` in a `causal` place reads nothing ahead.
    """

    config: Any
    initialization: Initialization = Initialization()
    sizes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @nn.compact
    def __call__(
        self,
        query: Float[Array, "*B T Dq"],
        values: Float[Array, "*B S Dv"],
        mask: Bool[Array, "*B S"],
        state: State | None = None,
        *,
        keys: Float[Array, "*B S Dk"] | None = None,
        aux: Mapping[str, Array] | None = None,
        observed: Mapping[str, Array] | None = None,
        query_mask: Bool[Array, "*#B #T S"] | Bool[Array, "*#B #H #T S"] | None = None,
        slot_positions: Int[Array, "S"] | None = None,
        **rest: Any,
    ) -> tuple[AttentionOutput, State]:
        """Attention: asks `values` (`*B S Dv`) with each `query` (`*B T Dq`).

        Args:
          query: What asks.
          values: What is averaged, and compared with unless `keys` are given.
          mask: `*B S`, True where a slot may be attended to.
          state: What an earlier call returned, for mechanisms that carry something.
          keys: `*B S Dk`, what is compared with the queries.
          aux: Arrays that the memory holds beside these, such as `source_ids` `*B S`.
          observed: What came before each query, such as `written_word` `*B T E`, for mechanisms
            that observe it.
          query_mask: `*B T S` or `T S`, True where a query may read a slot; restricts `mask`
            further, such as to the past; `*B H T S` for each head.
          slot_positions: Index of every slot in its sequence; 0 .. S-1 if not given.
          **rest: `bias`, `positions` (of the queries), `call` and `is_fused` of
            `ops.attend.attend`.

        Returns:
          (output, state).

        Raises:
          ValueError: If something is missing that the mechanism needs.
        """
        keys = values if keys is None else keys
        depths = query.shape[-1], keys.shape[-1], values.shape[-1]
        mechanism = build_mechanism(self.config, *depths, **self.sizes)
        if mechanism.observes and observed is None:
            raise ValueError(
                f"observed: expected what comes between queries, for {self.config.name!r}, found "
                "none"
            )
        params = declare(self, mechanism.parameters, self.initialization)
        # Whatever it is of: to a mechanism, it is the only source that there is.
        sources = sequence(keys, mask, values=values, aux=aux or {})
        memory = mechanism.make_memory(params, sources, slot_positions)
        return mechanism.attend(
            params, query, memory, state, observed=observed, mask=query_mask, **rest
        )
