"""Attention ready to be used: a mechanism with its parameters and heads, and its Linen layer."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Bool, Float, Int

from attention_jax.layers.encoder import Sources, sequence
from attention_jax.layers.mechanism import MechanismParts, build_parts, find_mechanism
from attention_jax.layers.parameters import Initialization, Parameter, declare
from attention_jax.ops.attend import attend, init_state, make_memory, observe
from attention_jax.types import Array, AttentionOutput, Call, Memory, Params, State


@dataclasses.dataclass(frozen=True, eq=False)
class Mechanism:
    """A mechanism ready to attend: pure functions of its parameters, heads included.

    With several heads, queries, keys and values are split along their depth, or projected by each
    head (`HeadLayout`); every head has parameters of its own, and what they read is joined again.
    The weights and scores that come out are the heads' mean, or those of the one head that stands
    for all; `aux["head_weights"]` (`*B T H S`) holds each head's weights.

    Mechanisms that were built of equal configs and sizes are equal and have one hash, so that a
    function under `jit` that takes one as a static argument is compiled once for all of them.

    Attributes:
      parts: Spec and parameters of one head.
      num_heads: How many heads there are.
      context_dim: Depth of its contexts.
      alignment_head: The head whose weights stand for all heads', or None for their mean.
      built: What `build` made of what: (config and sizes, the parts). Parts that took the place of
        these equal themselves alone.
    """

    parts: MechanismParts
    num_heads: int
    context_dim: int
    alignment_head: int | None = None
    built: tuple[Any, MechanismParts] | None = None

    @classmethod
    def build(
        cls, config: Any, query_dim: int, key_dim: int, value_dim: int, **sizes: Any
    ) -> "Mechanism":
        """Builds the mechanism that `config.name` names.

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
        made_of = (config, query_dim, key_dim, value_dim, tuple(sorted(sizes.items())))
        depths = {"query": query_dim, "key": key_dim, "value": value_dim}
        sizes = {"value_dim": value_dim, "place": "cross", **sizes}
        if not getattr(find_mechanism(config.name), "PROJECTS", False):
            for name, depth in depths.items():
                if depth % num_heads:
                    raise ValueError(
                        f"attention.num_heads: expected a divisor of the {name} depth {depth}, "
                        f"found {num_heads}"
                    )
            query_dim, key_dim = query_dim // num_heads, key_dim // num_heads
        parts = build_parts(config, query_dim, key_dim, sizes)
        context_dim = value_dim if parts.context_dim is None else parts.context_dim
        return cls(parts, num_heads, context_dim, built=(made_of, parts))

    def __eq__(self, other: object) -> bool:
        """Whether both do the same, as far as can be told without running them."""
        if not isinstance(other, Mechanism):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        """Of what tells mechanisms apart."""
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        made_of, parts = self.built or (None, None)
        what = made_of if parts is self.parts else id(self.parts)
        return what, self.num_heads, self.context_dim, self.alignment_head

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of all heads, with a leading head axis unless there is just one."""
        if not self._has_head_axis:
            return dict(self.parts.parameters)
        shared, size = self.parts.memory_parameters, self._num_memory_heads
        of_memory = (size, "heads" if size == self.num_heads else "memory_heads")
        tree = {
            name: parameter.stacked(*(of_memory if name in shared else (self.num_heads, "heads")))
            for name, parameter in self.parts.parameters.items()
        }
        return {**tree, **(self.parts.heads.parameters if self.parts.heads else {})}

    @property
    def averages_values(self) -> bool:
        """Whether contexts are averages of the values as they were given."""
        return not self._has_head_axis and self.context_dim > 0

    @property
    def _has_head_axis(self) -> bool:
        return self.num_heads > 1 or self.parts.heads is not None

    @property
    def _num_memory_heads(self) -> int:
        return self.parts.heads.num_memory_heads if self.parts.heads else self.num_heads

    def make_memory(
        self,
        params: Params,
        sources: Sources,
        positions: Int[Array, "S"] | None = None,
    ) -> Memory:
        """Prepares the one source; `positions` are those of its slots, 0 .. S-1 if not given."""
        (encoded,) = sources.values()
        keys, values, mask = encoded.annotations, encoded.averaged, encoded.mask
        aux = {"summary": encoded.summary, **encoded.aux} if encoded.finals else encoded.aux
        make = functools.partial(make_memory, self.parts.spec)
        if not self._has_head_axis:
            return make(params, keys, values, mask, positions, **aux)
        axis = keys.ndim - 2

        def one_head(params: Params, keys: Array, values: Array) -> Memory:
            return make(params, keys, values, mask, positions, **aux)

        params = self._of_memory(params)
        if self.parts.heads is not None:
            per_head = jax.vmap(one_head, in_axes=(0, None, None), out_axes=axis)
            return per_head(params, keys, values)
        per_head = jax.vmap(one_head, in_axes=(0, axis, axis), out_axes=axis)
        return per_head(params, self._split(keys), self._split(values))

    def init_state(self, params: Params, memory: Memory) -> State:
        """Returns what is carried into the first query."""
        init = functools.partial(init_state, self.parts.spec)
        if not self._has_head_axis:
            return init(params, memory)

        def one_head(shared: Params, own: Params, memory: Memory) -> State:
            return init({**shared, **own}, memory)

        axis = memory.keys.ndim - 3
        return self._over_heads(one_head, params, self._of_queries(params), memory, axis)

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
        tell = functools.partial(observe, self.parts.spec, observed=observed, where=where)
        if not self._has_head_axis:
            return tell(params, memory, state)

        def one_head(shared: Params, own: Params, memory: Memory, state: State) -> State:
            return tell({**shared, **own}, memory, state)

        axis = memory.keys.ndim - 3
        return self._over_heads(one_head, params, self._of_queries(params), memory, axis, state)

    def remaining(self, state: State) -> Float[Array, "*B S C"] | None:
        """Returns how much of each slot is left to translate, the heads' side by side."""
        if self.parts.remaining is None:
            return None
        left = state[self.parts.remaining]
        if not self._has_head_axis:
            return left
        return _side_by_side(jnp.moveaxis(left, -3, -2))

    def attend(
        self,
        params: Params,
        query: Float[Array, "*B T Dq"],
        memory: Memory,
        state: State | None = None,
        *,
        mask: Bool[Array, "*#B #T S"] | Bool[Array, "*#B #H #T S"] | None = None,
        bias: Float[Array, "*#B #T S"] | Float[Array, "*#B #H #T S"] | None = None,
        call: Call = Call(),
        **rest: Any,
    ) -> tuple[AttentionOutput, State]:
        """Answers queries `*B T Dq`; see `ops.attend.attend` for the keywords.

        A mask or a bias with one axis more than the queries has, `*B H T S`, is of each head.
        """
        axis = query.ndim - 2
        memory = self._with_batch_axes(memory, axis)
        given = {"mask": mask, "bias": bias}
        by_head = {
            name: self._by_head(name, row, axis)
            for name, row in given.items()
            if row is not None and row.ndim > axis + 2
        }
        rest |= {name: row for name, row in given.items() if name not in by_head}
        if not self._has_head_axis:
            rest |= {name: row[0] for name, row in by_head.items()}
            return attend(self.parts.spec, params, query, memory, state, call=call, **rest)
        state = self.init_state(params, memory) if state is None else state
        heads, part = self.parts.heads, None
        if heads is None:
            part = self._split(query)

        def one_head(shared: Params, own: Any, memory: Memory, state: State, part: Any) -> Any:
            own, rng, rows = own
            params, asked = {**shared, **own}, query if part is None else part
            more = {**rest, **rows, "call": call.with_key(rng)}
            return attend(self.parts.spec, params, asked, memory, state, **more)

        own = (self._of_queries(params), call.split(self.num_heads), by_head)
        output, state = self._over_heads(one_head, params, own, memory, axis, state, part)
        context = jnp.moveaxis(output.context, axis, -2)
        if heads is None:
            context = _side_by_side(context)
        else:
            context = heads.join(params, context)
        aux = {**output.aux, "head_weights": output.weights}

        def standing(array: Array) -> Array:
            if self.alignment_head is None:
                return array.mean(axis)
            return jax.lax.index_in_dim(array, self.alignment_head, axis, keepdims=False)

        joined = AttentionOutput(
            context,
            standing(output.weights),
            standing(output.scores),
            {name: jnp.moveaxis(value, axis, axis + 1) for name, value in aux.items()},
        )
        return joined, state

    def attend_row_by_row(
        self,
        params: Params,
        query: Float[Array, "*B T Dq"],
        memory: Memory,
        state: State,
        *,
        positions: Int[Array, "T"] | None = None,
    ) -> tuple[AttentionOutput, State]:
        """Does what `attend` does, mapped over the batch axes from outside.

        The axes of a head's products are then in the order of `memory`, heads behind the batch.
        In that of `attend`, heads come first, and all of the memory is transposed for it: no loss
        where it is as small as the queries, but most of the time for one query beside a cache.
        """
        if query.ndim == 2:
            return self.attend(params, query, memory, state, positions=positions)
        shared = jax.tree.map(lambda leaf: leaf.shape[0] != query.shape[0], (memory, state))
        rest = jax.tree.map(
            lambda leaf, is_shared: leaf[0] if is_shared else leaf, (memory, state), shared
        )
        axes = jax.tree.map(lambda is_shared: None if is_shared else 0, shared)

        def one_row(query: Array, memory: Memory, state: State) -> tuple[AttentionOutput, State]:
            return self.attend_row_by_row(params, query, memory, state, positions=positions)

        return jax.vmap(one_row, (0, *axes))(query, *rest)

    def _over_heads(
        self, function: Any, params: Params, own: Any, memory: Memory, axis: int, *arrays: Any
    ) -> Any:
        """Maps over all heads, each with the memory that it shares with its group.

        Args:
          function: (shared parameters, own, memory, *arrays) of one head.
          params: Of all heads.
          own: A tree with a leading head axis.
          memory: Memory heads stand at `axis`.
          axis: Where heads stand in the arrays, and in what is returned.
          *arrays: Further trees.
        """
        size = self._num_memory_heads
        group = self.num_heads // size

        def grouped(tree: Any, axis: int) -> Any:
            return jax.tree.map(
                lambda leaf: leaf.reshape(*leaf.shape[:axis], size, group, *leaf.shape[axis + 1 :]),
                tree,
            )

        at = (axis,) * len(arrays)
        inner = jax.vmap(
            function, (None, 0, None, *at), axis,
            axis_name="group", axis_size=group,
        )  # fmt: skip
        outer = jax.vmap(
            inner, (0, 0, axis, *at), axis, axis_name="memory_heads", axis_size=size
        )  # fmt: skip
        found = outer(self._of_memory(params), grouped(own, 0), memory, *grouped(arrays, axis))
        return jax.tree.map(
            lambda leaf: leaf.reshape(
                *leaf.shape[:axis], self.num_heads, *leaf.shape[axis + 2 :]
            ),
            found,
        )

    def _by_head(self, name: str, rows: Array, axis: int) -> Array:
        """Turns `*B H T S` into one `*B T S` for each head, on a leading axis."""
        if rows.ndim > axis + 3 or rows.shape[axis] not in (1, self.num_heads):
            raise ValueError(
                f"{name}: expected one for all heads, of {axis + 2} axes, or one for each of "
                f"{self.num_heads} heads, on the third axis from the end, found shape {rows.shape}"
            )
        every = (*rows.shape[:axis], self.num_heads, *rows.shape[axis + 1 :])
        return jnp.moveaxis(jnp.broadcast_to(rows, every), axis, 0)

    def _with_batch_axes(self, memory: Memory, number: int) -> Memory:
        """Gives a memory that all rows share axes of one, so that its slots stand as theirs do."""
        missing = number - (memory.mask.ndim - 1 - self._has_head_axis)
        return jax.tree.map(lambda leaf: leaf[(None,) * missing], memory) if missing else memory

    def _of_memory(self, params: Params) -> Params:
        """What the memory heads depend on: with one for every head, anything."""
        shared, joint = self.parts.memory_parameters, self._joint
        is_any = self._num_memory_heads == self.num_heads
        return {
            name: value
            for name, value in params.items()
            if name not in joint and (is_any or name in shared)
        }

    def _of_queries(self, params: Params) -> Params:
        """What the query heads depend on beside their memory heads."""
        others = self.parts.memory_parameters | self._joint
        return {name: value for name, value in params.items() if name not in others}

    @property
    def _joint(self) -> frozenset[str]:
        return frozenset(self.parts.heads.parameters if self.parts.heads else ())

    def _split(self, array: Float[Array, "*B S D"]) -> Float[Array, "*B H S Dh"]:
        # No -1: of a memory without slots yet, no size can be told from the others.
        *rest, depth = array.shape
        split = array.reshape(*rest, self.num_heads, depth // self.num_heads)
        return jnp.moveaxis(split, -2, -3)


def _side_by_side(heads: Float[Array, "*B H Dh"]) -> Float[Array, "*B D"]:
    *rest, number, depth = heads.shape
    return heads.reshape(*rest, number * depth)


class Attention(nn.Module):
    """Any mechanism as a Linen layer, for models of one's own.

    Attributes:
      config: A mechanism's config, such as `mechanisms.bahdanau.Config(attention_dim=64)`.
      initialization: How its parameters start.
      sizes: What some mechanisms need beside the depths of their arrays; see `layers.mechanism`.
        A `place` says what is asked and restricts nothing, which is for `query_mask`; but a
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
        mechanism = Mechanism.build(self.config, *depths, **self.sizes)
        if mechanism.observes and observed is None:
            raise ValueError(
                f"observed: expected what comes between queries, for {self.config.name!r}, found "
                "none"
            )
        params = declare(self, mechanism.parameters, self.initialization)
        sources = sequence(keys, mask, values=values, aux=aux or {})
        memory = mechanism.make_memory(params, sources, slot_positions)
        return mechanism.attend(
            params, query, memory, state, observed=observed, mask=query_mask, **rest
        )
