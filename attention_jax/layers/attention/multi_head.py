"""Multi-head attention: heads side by side, each a mechanism of its own over a part of the depths.

Queries, keys and values are split along their depth, or projected by each head (`HeadLayout`).
Every head has parameters of its own, and what they read is joined again.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from attention_jax.layers.attention.single_head import OneSource, rows_by_head, with_batch_axes
from attention_jax.layers.encoder import Sources
from attention_jax.layers.mechanism import Traits
from attention_jax.layers.parameters import Parameter, shared_names
from attention_jax.ops.attend import attend, init_state, make_memory, observe
from attention_jax.types import Array, AttentionOutput, Call, Memory, Params, State


class HeadLayout(NamedTuple):
    """Head layout: heads that read whole queries, keys and values, and project them themselves.

    Attributes:
      num_memory_heads: How many of the heads have keys and values of their own; the query heads
        are dealt out to them in order.
      parameters: The parameters that belong to no head, used by `join`.
      join: (those parameters, the heads' contexts `*B T H Dv`) -> contexts `*B T D`.
    """

    num_memory_heads: int
    parameters: Mapping[str, Parameter]
    join: Callable[[Params, Array], Array]


@dataclasses.dataclass(frozen=True, eq=False)
class MultiHead(OneSource):
    """Multi-head attention: several heads, or a single one that projects.

    The weights and scores that come out are the heads' mean, or those of the one head that stands
    for all; `aux["head_weights"]` (`*B T H S`) holds each head's weights.

    Attributes:
      num_heads: How many heads there are.
      layout: How heads project, or None where each has an equal part of the depths.
      alignment_head: The head whose weights stand for all heads', or None for their mean.
    """

    num_heads: int
    layout: HeadLayout | None = None
    alignment_head: int | None = None

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of all heads, with a leading head axis, and those that join them."""
        shared, size = self._shared, self._num_memory_heads
        # An axis of memory heads may be too short to be split over devices as that of heads is.
        of_memory = (size, "heads" if size == self.num_heads else "memory_heads")
        tree = {
            name: parameter.stacked(*(of_memory if name in shared else (self.num_heads, "heads")))
            for name, parameter in self.parts.parameters.items()
        }
        return {**tree, **(self.layout.parameters if self.layout else {})}

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """What may be relied on; the weights of one head do not tell how far all have read."""
        traits = self.parts.traits
        return traits._replace(is_online=traits.is_online and self.alignment_head is None)

    @property
    def _num_memory_heads(self) -> int:
        return self.layout.num_memory_heads if self.layout else self.num_heads

    def make_memory(
        self, params: Params, sources: Sources, positions: Int[Array, "S"] | None = None
    ) -> Memory:
        """Prepares the source for each head; heads stand behind the batch axes."""
        keys, values, mask, aux = self._of_source(sources)
        make = functools.partial(make_memory, self.parts.spec)
        # *B S D: heads go behind the batch axes, before the slots.
        axis = keys.ndim - 2

        def one_head(params: Params, keys: Array, values: Array) -> Memory:
            return make(params, keys, values, mask, positions, **aux)

        params = self._of_memory(params)
        # Heads that project read all of the source: it is not copied for each.
        if self.layout is not None:
            per_head = jax.vmap(one_head, in_axes=(0, None, None), out_axes=axis)
            return per_head(params, keys, values)
        per_head = jax.vmap(one_head, in_axes=(0, axis, axis), out_axes=axis)
        return per_head(params, self._split(keys), self._split(values))

    def init_state(self, params: Params, memory: Memory) -> State:
        """Returns what is carried into the first query."""
        init = functools.partial(init_state, self.parts.spec)

        def one_head(shared: Params, own: Params, memory: Memory) -> State:
            return init({**shared, **own}, memory)

        axis = memory.keys.ndim - 3
        return self._over_heads(one_head, params, self._of_queries(params), memory, axis)

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

        def one_head(shared: Params, own: Params, memory: Memory, state: State) -> State:
            return tell({**shared, **own}, memory, state)

        axis = memory.keys.ndim - 3
        return self._over_heads(one_head, params, self._of_queries(params), memory, axis, state)

    def remaining(self, state: State) -> Float[Array, "*B S C"] | None:
        """Returns how much of each slot is left to translate, the heads' side by side."""
        if not self.tells_remaining:
            return None
        # *B H S C -> *B S H C -> *B S HC
        return _side_by_side(jnp.moveaxis(state[self.parts.remaining], -3, -2))

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
        """Answers queries with every head, each with a key of its own.

        A mask or a bias with one axis more than the queries has, `*B H T S`, is of each head.
        """
        axis = query.ndim - 2
        memory = with_batch_axes(memory, axis - memory.mask.ndim + 2)  # which has a head axis
        given = {"mask": mask, "bias": bias}
        by_head = {
            name: rows_by_head(name, row, axis, self.num_heads)
            for name, row in given.items()
            if row is not None and row.ndim > axis + 2
        }
        rest |= {name: row for name, row in given.items() if name not in by_head}
        # Leaves `*B H ...`, as the memory's are.
        state = self.init_state(params, memory) if state is None else state
        part = self._split(query) if self.layout is None else None  # *B H T Dh

        def one_head(shared: Params, own: Any, memory: Memory, state: State, part: Any) -> Any:
            # A head's parameters, its key, and its rows of a mask or bias.
            own, rng, rows = own
            params, asked = {**shared, **own}, query if part is None else part
            more = {**rest, **rows, "call": call.with_key(rng)}
            return attend(self.parts.spec, params, asked, memory, state, **more)

        own = (self._of_queries(params), call.split(self.num_heads), by_head)  # heads first in each
        output, state = self._over_heads(one_head, params, own, memory, axis, state, part)
        contexts = jnp.moveaxis(output.context, axis, -2)  # *B T H Dv
        if self.layout is None:
            context = _side_by_side(contexts)
        else:
            context = self.layout.join(params, contexts)
        aux = {**output.aux, "head_weights": output.weights}

        def standing(array: Array) -> Array:
            if self.alignment_head is None:
                return array.mean(axis)  # still a distribution, as the heads' are
            return jax.lax.index_in_dim(array, self.alignment_head, axis, keepdims=False)

        joined = AttentionOutput(
            context,
            standing(output.weights),  # *B H T S -> *B T S
            standing(output.scores),
            {name: jnp.moveaxis(value, axis, axis + 1) for name, value in aux.items()},  # *B T H ..
        )
        return joined, state

    def _contributions(
        self, params: Params, memory: Memory, output: AttentionOutput
    ) -> tuple[Float[Array, "*B T H S"], Float[Array, "*B S H D"]]:
        """Returns those of all heads, each as it enters the joint context, without its bias."""
        values = jnp.repeat(memory.values, self.num_heads // self._num_memory_heads, axis=-3)
        values = jnp.moveaxis(values, -3, -2)  # *B H S Dv -> *B S H Dv
        layout = self.layout
        join = _side_by_side if layout is None else functools.partial(layout.join, params)
        nothing = join(jnp.zeros(values.shape[-2:], values.dtype))

        def alone(head: Array) -> Array:
            is_there = (jnp.arange(self.num_heads) == head)[:, None]  # H 1
            return join(jnp.where(is_there, values, 0)) - nothing

        vectors = jax.lax.map(alone, jnp.arange(self.num_heads))  # H *B S D
        read = output.aux.get("read", output.aux["head_weights"])
        return read, jnp.moveaxis(vectors, 0, -2)

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
                # H -> memory heads, query heads of each: those of one group stand side by side.
                lambda leaf: leaf.reshape(*leaf.shape[:axis], size, group, *leaf.shape[axis + 1 :]),
                tree,
            )

        # Two maps, over memory heads and over the query heads of each: a memory is never repeated.
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
            # Memory heads and the groups of query heads become one axis of heads again.
            lambda leaf: leaf.reshape(
                *leaf.shape[:axis], self.num_heads, *leaf.shape[axis + 2 :]
            ),
            found,
        )

    def _of_memory(self, params: Params) -> Params:
        """Returns the memory heads' parameters: all, if each query head has its own memory."""
        shared, joint = self._shared, self._joint
        # Then a query's parameters may prepare the memory, too, as in scores that project keys.
        is_any = self._num_memory_heads == self.num_heads
        return {
            name: value
            for name, value in params.items()
            if name not in joint and (is_any or name in shared)
        }

    def _of_queries(self, params: Params) -> Params:
        """Returns the parameters of query heads that are not those of their memory heads."""
        others = self._shared | self._joint
        return {name: value for name, value in params.items() if name not in others}

    @property
    def _shared(self) -> frozenset[str]:
        return shared_names(self.parts.parameters, "heads")

    @property
    def _joint(self) -> frozenset[str]:
        return frozenset(self.layout.parameters if self.layout else ())

    def _split(self, array: Float[Array, "*B S D"]) -> Float[Array, "*B H S Dh"]:
        # Not -1, which is unknown for a memory that has no slots yet.
        *rest, depth = array.shape
        # *B S D -> *B S H Dh -> *B H S Dh
        split = array.reshape(*rest, self.num_heads, depth // self.num_heads)
        return jnp.moveaxis(split, -2, -3)


def _side_by_side(heads: Float[Array, "*B H Dh"]) -> Float[Array, "*B D"]:
    *rest, number, depth = heads.shape
    return heads.reshape(*rest, number * depth)


def weights_of_heads(output: AttentionOutput) -> Float[Array, "*B T H S"]:
    """Returns the weights of each head; those of the only one where there is one."""
    return output.aux.get("head_weights", output.weights[..., None, :])
