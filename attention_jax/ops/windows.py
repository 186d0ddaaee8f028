"""Local attention: 2D+1 slots around a centre, at a cost that does not grow with the source.

The slots of a window are gathered out of the memory, so that scores, weights and context are
computed over 2D+1 slots only. An index outside the source is clipped for the gathering and
masked; a window that lies wholly outside gives zero weights.

The windows of many queries hold a slot many times over. They are gathered for a few queries at a
time, and again in the backward pass (rematerialization), so that they need no more memory than the
source does.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.ops.lookup import take_slots
from attention_jax.ops.pattern import Answer, Queries
from attention_jax.ops.positions import at_indices, slots_at
from attention_jax.types import AttentionOutput, Memory, Params

QUERIES_AT_ONCE = 8  # whose windows are in memory together


class Window(NamedTuple):
    """Window: the slots that each query may attend to, around a centre.

    Attributes:
      center: `*B T`, float, the position around which the window lies.
      slots: `*B T W`, int, positions of the slots, consecutive, also outside the source.
      inside: `*B T W`, bool, True where the slot belongs to the window.
    """

    center: Array
    slots: Array
    inside: Array


@dataclasses.dataclass(frozen=True)
class LocalWindow:
    """Local attention: every query reads a window of slots, at a cost of as many.

    Attributes:
      place: (params, queries `*B T Dq`, memory, positions `T`) -> the windows of all queries.
      is_own: Whether the heads of one query may have windows at different places.
    """

    place: Callable[[Params, Array, Memory, Array], Window]
    is_own: bool = False
    is_causal: ClassVar[bool] = False

    def answer(
        self, answer: Answer, spec: Any, params: Params, queries: Queries, memory: Memory
    ) -> AttentionOutput:
        """Gives every query a small memory of its own, and attends to that."""
        query_axis, number = queries.vectors.ndim - 2, queries.vectors.shape[-2]
        if not isinstance(number, int) or number <= QUERIES_AT_ONCE:  # symbolic under jax.export
            return self._answer_at_once(answer, spec, params, queries, memory)

        def one_block(_: None, step: Any) -> tuple[None, AttentionOutput]:
            (vectors, positions, mask, bias), rng = step
            block = dataclasses.replace(
                queries, vectors=vectors, positions=positions, mask=mask, bias=bias,
                call=queries.call.at_step(rng),
            )  # fmt: skip
            return None, self._answer_at_once(answer, spec, params, block, memory)

        def join(part: Array) -> Array:  # N *B Q ... -> *B T ...
            part = jnp.moveaxis(part, 0, query_axis)
            *batch, blocks, size = part.shape[: query_axis + 2]
            part = part.reshape(*batch, blocks * size, *part.shape[query_axis + 2 :])
            return jax.lax.slice_in_dim(part, 0, number, axis=query_axis)

        blocks = _in_blocks(queries)
        keys = queries.call.split(blocks[1].shape[0])
        _, outputs = jax.lax.scan(jax.checkpoint(one_block), None, (blocks, keys))
        return jax.tree.map(join, outputs)

    def _answer_at_once(
        self, answer: Answer, spec: Any, params: Params, queries: Queries, memory: Memory
    ) -> AttentionOutput:
        size = memory.mask.shape[-1]
        window = self.place(params, queries.vectors, memory, queries.positions)
        index = window_indices(memory, window)

        def inside(rows: Array | None) -> Array | None:  # *B T S -> *B T 1 W
            return None if rows is None else gather_from_rows(rows, index)[..., None, :]

        each = dataclasses.replace(
            queries,
            vectors=queries.vectors[..., None, :],  # *B T Dq -> *B T 1 Dq
            positions=queries.positions[:, None],  # T -> T 1
            mask=inside(queries.mask),
            bias=inside(queries.bias),
            is_fused=False,
        )
        output = answer(spec, params, each, gather_window(memory, window))

        def everywhere(rows: Array) -> Array:  # *B T 1 W -> *B T S
            return scatter_window(rows[..., 0, :], index, size)

        aux = {**output.aux, "reach": output.aux["reach"][..., 0], "center": window.center}
        aux |= {name: everywhere(aux[name]) for name in ("read",) if name in aux}
        weights, scores = everywhere(output.weights), everywhere(output.scores)
        return AttentionOutput(output.context[..., 0, :], weights, scores, aux)


def _in_blocks(queries: Queries) -> tuple[Array, Array, Array | None, Array | None]:
    """Splits vectors, positions, mask and bias into blocks of queries, the last one filled up."""
    number = queries.vectors.shape[-2]
    missing = -number % QUERIES_AT_ONCE

    def split(rows: Array | None) -> Array | None:  # *#B #T D -> N *#B Q D
        if rows is None:
            return None
        rows = jnp.broadcast_to(rows, (*rows.shape[:-2], number, rows.shape[-1]))
        rows = jnp.pad(rows, [(0, 0)] * (rows.ndim - 2) + [(0, missing), (0, 0)])
        rows = rows.reshape(*rows.shape[:-2], -1, QUERIES_AT_ONCE, rows.shape[-1])
        return jnp.moveaxis(rows, -3, 0)

    positions = jnp.pad(queries.positions, (0, missing)).reshape(-1, QUERIES_AT_ONCE)
    return split(queries.vectors), positions, split(queries.mask), split(queries.bias)


def window_around(
    center: Float[Array, "*B T"], half_width: int, *, whole_slots: bool = True
) -> Window:
    """Places windows of `2 half_width + 1` slots around their centres.

    Args:
      center: Where the windows lie; no gradient flows through the choice of slots.
      half_width: D in the paper.
      whole_slots: Whether the window is floor(center) +- D, of always 2D+1 slots (the authors'
        code), or holds the slots with |s - center| <= D (the paper's formula).

    Returns:
      The windows.

    Source:
      Luong et al. (2015), section 3.2.
    """
    offsets = jnp.arange(-half_width, half_width + 1)
    slots = jnp.floor(center).astype(jnp.int32)[..., None] + offsets  # *B T -> *B T W
    if whole_slots:
        return Window(center, slots, jnp.ones(slots.shape, bool))
    return Window(center, slots, jnp.abs(slots - center[..., None]) <= half_width)


def gather_window(memory: Memory, window: Window) -> Memory:
    """Gathers every query's own memory: leading axes `*B T`, and W slots."""
    size, index = memory.mask.shape[-1], window_indices(memory, window)
    real = window.inside & (index >= 0) & (index < size)
    # In bounds for the gathering; the mask already says which of them are no slots.
    index = jnp.clip(index, 0, size - 1)
    mask = _take(memory.mask[..., None], index)[..., 0] & real
    return Memory(
        keys=_take(memory.keys, index),
        values=_take(memory.values, index),
        mask=mask,
        aux={**at_indices(memory).aux, "slots": window.slots, "center": window.center},
    )


def window_indices(memory: Memory, window: Window) -> Int[Array, "*B T W"]:
    """Returns the indices of a window's slots, out of bounds where there is no slot."""
    *batch, queries, width = window.slots.shape
    index = slots_at(memory, window.slots.reshape(*batch, queries * width))
    return index.reshape(window.slots.shape)


def scatter_window(
    weights: Float[Array, "*B T W"], slots: Int[Array, "*B T W"], size: int, fill: float = 0.0
) -> Float[Array, "*B T {size}"]:
    """Scatters what was computed inside windows back to its place among all slots."""
    # One column too many, for values of no slot: they all land there and are cut off.
    full = jnp.full((*weights.shape[:-1], size + 1), fill, weights.dtype)
    index = jnp.where((slots >= 0) & (slots < size), slots, size)

    def put(row: Array, index: Array, values: Array) -> Array:
        return row.at[index].set(values)

    return jnp.vectorize(put, signature="(s),(w),(w)->(s)")(full, index, weights)[..., :size]


def gather_from_rows(
    rows: Float[Array, "*#B #T S"] | Bool[Array, "*#B #T S"], slots: Int[Array, "*B T W"]
) -> Array:
    """Gathers the window's part of an array that has a value for every query and slot."""
    rows = jnp.broadcast_to(rows, (*slots.shape[:-1], rows.shape[-1]))
    return jnp.take_along_axis(rows, jnp.clip(slots, 0, rows.shape[-1] - 1), axis=-1)


def _take(values: Array, index: Array) -> Array:
    """Gathers along the slot axis: `*B S D` and `*B T W` give `*B T W D`."""
    *batch, queries, width = index.shape
    taken = take_slots(values, index.reshape(*batch, queries * width))
    return taken.reshape(*batch, queries, width, values.shape[-1])
