"""Attention as a layer: a mechanism with its parameters and heads, found by its config's name.

A mechanism file in `layers/mechanisms` holds `PAPER`, a frozen dataclass `Config`, and
`build(config, query_dim, key_dim) -> MechanismParts`. Its file name is its name in configs.

A mechanism that depends on more of its model than these two depths names it in `NEEDS`, and its
`build` takes it by keyword:

  source_vocabulary_size  how many source ids there are; the memory's `aux["source_ids"]` holds them
  word_dim                depth of an embedded target word; `observed["written_word"]` is one
"""

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Bool, Float

from attention_jax.layers import mechanisms
from attention_jax.layers.parameters import Initialization, Parameter, declare
from attention_jax.ops import attend as attention
from attention_jax.types import Array, AttentionOutput, Memory, Params, State


class MechanismParts(NamedTuple):
    """What a mechanism file builds.

    Attributes:
      spec: How it attends.
      parameters: Its parameters, for one head.
      is_alignment: Whether its weights say which source positions were attended to.
      context_dim: Depth of its contexts, where that is not the values' depth.
      remaining: Name of the tracked value `*B S C` that says how much of each slot is left to
        translate, if there is one.
    """

    spec: attention.AttentionSpec
    parameters: Mapping[str, Parameter]
    is_alignment: bool = True
    context_dim: int | None = None
    remaining: str | None = None


def mechanism_names() -> list[str]:
    """Lists the mechanisms: the modules of `layers/mechanisms`."""
    return sorted(module.name for module in pkgutil.iter_modules(mechanisms.__path__))


def find_mechanism(name: str) -> ModuleType:
    """Returns the module of a mechanism.

    Raises:
      KeyError: With the list of names, if there is none of that name.
    """
    if name not in mechanism_names():
        raise KeyError(mechanism_names())
    return importlib.import_module(f"{mechanisms.__name__}.{name}")


def find_config(name: str) -> type:
    """Returns the config dataclass of a mechanism; raises `KeyError` as `find_mechanism` does."""
    return find_mechanism(name).Config


def build_parts(
    config: Any, query_dim: int, key_dim: int, sizes: Mapping[str, int]
) -> MechanismParts:
    """Builds one head of the mechanism that `config.name` names.

    Raises:
      ValueError: If `sizes` lacks something that the mechanism needs.
    """
    module = find_mechanism(config.name)
    needs = getattr(module, "NEEDS", ())
    missing = [name for name in needs if name not in sizes]
    if missing:
        raise ValueError(
            f"attention.name: expected a model with {' and '.join(missing)} for {config.name!r}, "
            "found none"
        )
    return module.build(config, query_dim, key_dim, **{name: sizes[name] for name in needs})


def check_window_score(config: Any, half_width: int) -> None:
    """Raises `ValueError` unless a mechanism's config can score the slots of a window."""
    size = 2 * half_width + 1
    if not hasattr(config, "normalizer"):
        raise ValueError(f"score.name: expected a score over all slots, found {config.name!r}")
    if config.num_heads != 1:
        raise ValueError(
            f"score.num_heads: expected 1, for the window's own num_heads count, "
            f"found {config.num_heads}"
        )
    sizes = dict.fromkeys(getattr(find_mechanism(config.name), "NEEDS", ()), 1)
    carried = [name for name, _ in build_parts(config, 1, 1, sizes).spec.trackers]
    if carried:
        raise ValueError(
            f"score.name: expected a score that carries nothing from query to query, found "
            f"{config.name!r}, which carries {' and '.join(carried)}"
        )
    if getattr(config, "max_positions", size) != size:
        raise ValueError(
            f"score.max_positions: expected {size}, one for each slot of the window, "
            f"found {config.max_positions}"
        )


@dataclasses.dataclass(frozen=True)
class Mechanism:
    """A mechanism ready to attend: pure functions of its parameters, heads included.

    With several heads, queries, keys and values are split along their depth; every head has
    parameters of its own, and what the heads read is joined again. The weights that come out are
    the heads' mean, and `aux["head_weights"]` (`*B T H S`) holds each head's.

    Attributes:
      parts: Spec and parameters of one head.
      num_heads: How many heads there are.
      context_dim: Depth of its contexts.
    """

    parts: MechanismParts
    num_heads: int
    context_dim: int

    @classmethod
    def build(
        cls, config: Any, query_dim: int, key_dim: int, value_dim: int, **sizes: int
    ) -> "Mechanism":
        """Builds the mechanism that `config.name` names.

        Args:
          config: The mechanism's own config dataclass.
          query_dim: Depth of the queries.
          key_dim: Depth of the keys.
          value_dim: Depth of the values.
          **sizes: What some mechanisms need beside these; see above.

        Raises:
          ValueError: If a depth cannot be split into the heads, or a size is missing.
        """
        num_heads = getattr(config, "num_heads", 1)
        for name, depth in (("query", query_dim), ("key", key_dim), ("value", value_dim)):
            if depth % num_heads:
                raise ValueError(
                    f"attention.num_heads: expected a divisor of the {name} depth {depth}, "
                    f"found {num_heads}"
                )
        parts = build_parts(config, query_dim // num_heads, key_dim // num_heads, sizes)
        context_dim = value_dim if parts.context_dim is None else parts.context_dim
        return cls(parts, num_heads, context_dim)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of all heads, with a leading head axis if there are several."""
        heads = () if self.num_heads == 1 else (self.num_heads,)
        return {
            name: parameter._replace(shape=(*heads, *parameter.shape))
            for name, parameter in self.parts.parameters.items()
        }

    def make_memory(
        self,
        params: Params,
        keys: Float[Array, "*B S Dk"],
        values: Float[Array, "*B S Dv"],
        mask: Bool[Array, "*B S"],
        **aux: Array,
    ) -> Memory:
        """Prepares a source: `*B S Dk`, `*B S Dv` and `*B S` become a memory."""
        make = functools.partial(attention.make_memory, self.parts.spec)
        if self.num_heads == 1:
            return make(params, keys, values, mask, **aux)
        axis = keys.ndim - 2
        per_head = jax.vmap(
            lambda params, keys, values: make(params, keys, values, mask, **aux),
            in_axes=(0, axis, axis),
            out_axes=axis,
        )
        return per_head(params, self._split(keys), self._split(values))

    def init_state(self, params: Params, memory: Memory) -> State:
        """Returns what is carried into the first query."""
        init = functools.partial(attention.init_state, self.parts.spec)
        if self.num_heads == 1:
            return init(params, memory)
        axis = memory.keys.ndim - 3
        return jax.vmap(init, in_axes=(0, axis), out_axes=axis)(params, memory)

    @property
    def observes(self) -> bool:
        """Whether it is to be told what happens between queries."""
        return self.parts.spec.observes

    def observe(
        self,
        params: Params,
        memory: Memory,
        state: State,
        observed: Mapping[str, Array],
        where: Bool[Array, "*B"] | None = None,
    ) -> State:
        """Tells what became known since the last query; see `ops.attend.observe`."""
        tell = functools.partial(attention.observe, self.parts.spec, observed=observed, where=where)
        if self.num_heads == 1:
            return tell(params, memory, state)
        axis = memory.keys.ndim - 3
        return jax.vmap(tell, in_axes=(0, axis, axis), out_axes=axis)(params, memory, state)

    def remaining(self, state: State) -> Float[Array, "*B S C"] | None:
        """Returns how much of each slot is left to translate, the heads' side by side."""
        if self.parts.remaining is None:
            return None
        left = state[self.parts.remaining]
        if self.num_heads == 1:
            return left
        left = jnp.moveaxis(left, -3, -2)
        return left.reshape(*left.shape[:-2], -1)

    def attend(
        self,
        params: Params,
        query: Float[Array, "*B T Dq"],
        memory: Memory,
        state: State | None = None,
        **call: Any,
    ) -> tuple[AttentionOutput, State]:
        """Answers queries `*B T Dq`; see `ops.attend.attend` for the keywords."""
        if self.num_heads == 1:
            return attention.attend(self.parts.spec, params, query, memory, state, **call)
        axis = query.ndim - 2
        state = self.init_state(params, memory) if state is None else state
        output, state = jax.vmap(
            lambda *arrays: attention.attend(self.parts.spec, *arrays, **call),
            in_axes=(0, axis, axis, axis),
            out_axes=axis,
        )(params, self._split(query), memory, state)
        context = jnp.moveaxis(output.context, axis, -2)
        aux = {**output.aux, "head_weights": output.weights}
        joined = AttentionOutput(
            context.reshape(*context.shape[:-2], -1),
            output.weights.mean(axis),
            output.scores.mean(axis),
            {name: jnp.moveaxis(value, axis, axis + 1) for name, value in aux.items()},
        )
        return joined, state

    def _split(self, array: Float[Array, "*B S D"]) -> Float[Array, "*B H S Dh"]:
        split = array.reshape(*array.shape[:-1], self.num_heads, -1)
        return jnp.moveaxis(split, -2, -3)


class Attention(nn.Module):
    """Any mechanism as a Linen layer, for models of one's own.

    Attributes:
      config: A mechanism's config, such as `mechanisms.bahdanau.Config(attention_dim=64)`.
      initialization: How its parameters start.
      sizes: What some mechanisms need to know beside the depths of their arrays; see above.
    """

    config: Any
    initialization: Initialization = Initialization()
    sizes: Mapping[str, int] = dataclasses.field(default_factory=dict)

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
        **call: Any,
    ) -> tuple[AttentionOutput, State]:
        """Attends from `query` (`*B T Dq`) over `values` (`*B S Dv`).

        Args:
          query: What asks.
          values: What is averaged, and compared with unless `keys` are given.
          mask: `*B S`, True where a slot may be attended to.
          state: What an earlier call returned, for mechanisms that carry something.
          keys: `*B S Dk`, what is compared with the queries.
          aux: Arrays that the memory holds beside these, such as `source_ids` `*B S`.
          observed: What came before each query, such as `written_word` `*B T E`, for mechanisms
            that observe it.
          **call: See `ops.attend.attend`.

        Returns:
          (output, state).

        Raises:
          ValueError: If something is missing that the mechanism needs.
        """
        keys = values if keys is None else keys
        depths = query.shape[-1], keys.shape[-1], values.shape[-1]
        mechanism = Mechanism.build(self.config, *depths, **self.sizes)
        if mechanism.observes and observed is None:
            raise ValueError(
                f"observed: expected what comes between queries, for {self.config.name!r}, found "
                "none"
            )
        params = declare(self, mechanism.parameters, self.initialization)
        memory = mechanism.make_memory(params, keys, values, mask, **(aux or {}))
        return mechanism.attend(params, query, memory, state, observed=observed, **call)
