"""Banded attention: queries of one sequence attend to the slots around their own places.

A block of queries shares the slots that any of them may read: with as many queries as a window has
slots these are not twice as many, so that cost and memory grow with the sequence and not with its
square, and each slot is copied about twice and not once for every query that reads it.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Shaped

from attention_jax.ops.pattern import Answer, Queries
from attention_jax.ops.positions import positions_of_slots
from attention_jax.ops.windows import scatter_window
from attention_jax.types import AttentionOutput, Memory, Params


class Band(NamedTuple):
    """Sliding-window band: the query at position p may attend to p - before .. p + after.

    Attributes:
      before: How far back.
      after: How far ahead.
      first: How many slots at the beginning it may read as well, as far as p + after.
    """

    before: int
    after: int
    first: int = 0

    @property
    def is_causal(self) -> bool:
        """Whether no query reads a slot after its own position."""
        return self.after == 0

    def answer(
        self, answer: Answer, spec: Any, params: Params, queries: Queries, memory: Memory
    ) -> AttentionOutput:
        """Answers in blocks where queries and slots can be laid out so, else behind a mask."""
        num_queries, num_slots = queries.vectors.shape[-2], memory.mask.shape[-1]
        if not has_blocks(memory, num_queries):
            near = within_band(self, queries.positions, positions_of_slots(memory))
            mask = near if queries.mask is None else near & queries.mask
            output = answer(spec, params, dataclasses.replace(queries, mask=mask), memory)
            return dataclasses.replace(output, scores=jnp.where(near, output.scores, 0.0))
        blocks = in_blocks(self, queries.positions, num_slots)

        def of_blocks(rows: Array) -> Array:
            return rows_of_blocks(rows, blocks, num_queries)

        within = reach(self, blocks)
        in_block = dataclasses.replace(
            queries,
            vectors=split_queries(queries.vectors, blocks),
            positions=blocks.positions,
            mask=within if queries.mask is None else within & of_blocks(queries.mask),
            bias=None if queries.bias is None else of_blocks(queries.bias),
        )
        output = answer(spec, params, in_block, split_memory(memory, self, blocks))
        return join(output, self, blocks, num_queries, num_slots)


class Blocks(NamedTuple):
    """Block-sparse layout: consecutive queries in blocks, each with the slots that it may read.

    Attributes:
      positions: `N Q`, those of the queries, beyond the last query too.
      slots: `N K`, indices of each block's slots, also outside the sequence.
      num_first: How many slots at the beginning of the sequence lead those of every block; they
        may come again.
    """

    positions: Int[Array, "N Q"]
    slots: Int[Array, "N K"]
    num_first: int


def has_blocks(memory: Memory, num_queries: int) -> bool:
    """Whether queries can be laid out in blocks: their number is static, and slots are in order."""
    sizes = (num_queries, memory.mask.shape[-1])
    return "positions" not in memory.aux and all(isinstance(n, int) and n > 0 for n in sizes)


def within_band(
    band: Band, positions: Int[Array, "T"], slots: Int[Array, "*#B S"]
) -> Bool[Array, "*#B T S"]:
    """Band mask: tells where a query may read a slot, by the positions of both, in any order."""
    slots = slots[..., None, :]
    offset = slots - positions[:, None]
    return (offset <= band.after) & ((offset >= -band.before) | (slots < band.first))


def in_blocks(band: Band, positions: Int[Array, "T"], num_slots: int) -> Blocks:
    """Lays out consecutive queries in blocks, each as long as the band is wide.

    Args:
      band: What a query may read.
      positions: Of the queries, consecutive.
      num_slots: S, of the sequence.

    Returns:
      Blocks of min(T, before + after + 1) queries. The slots of a single block lie inside the
      sequence, as far as that has enough of them.
    """
    num_queries, width = positions.shape[0], band.before + band.after + 1
    size = min(num_queries, width)
    # Rounded up: the last block may have queries beyond the end, which `join` cuts off.
    number = -(-num_queries // size)
    first = positions[0] + size * jnp.arange(number)
    length = size + width - 1
    starts = first - band.before
    if number == 1:
        # A single block needs no slots outside of the sequence, and no more than there are.
        length = min(length, num_slots)
        starts = jnp.clip(starts, 0, num_slots - length)
    num_first = min(band.first, num_slots)
    begins = jnp.broadcast_to(jnp.arange(num_first), (number, num_first))
    slots = jnp.concatenate([begins, starts[:, None] + jnp.arange(length)], axis=-1)  # N K
    return Blocks(first[:, None] + jnp.arange(size), slots, num_first)


def split_queries(query: Shaped[Array, "*B T D"], blocks: Blocks) -> Shaped[Array, "*B N Q D"]:
    """Returns queries in their blocks, with zeros behind the last one."""
    number, size = blocks.positions.shape
    missing = number * size - query.shape[-2]
    padded = jnp.pad(query, [(0, 0)] * (query.ndim - 2) + [(0, missing), (0, 0)])
    return padded.reshape(*query.shape[:-2], number, size, query.shape[-1])


def split_memory(memory: Memory, band: Band, blocks: Blocks) -> Memory:
    """Returns every block's own memory: leading axes `*B N`, `K` slots."""

    def split(array: Array) -> Array:
        return _split_slots(array, band, blocks)

    return Memory(
        keys=split(memory.keys),
        values=split(memory.values),
        mask=split(memory.mask[..., None])[..., 0],
        aux={**memory.aux, "slots": blocks.slots},
    )


def _split_slots(
    array: Shaped[Array, "*B S D"], band: Band, blocks: Blocks
) -> Shaped[Array, "*B N K D"]:
    """Returns the slots of each block, with zeros where there are no slots.

    Overlapping pieces are put together from slices, whose gradients are cheap everywhere; those of
    gathered slots would be added up one by one on a CPU.
    """
    (number, size), num_first = blocks.positions.shape, blocks.num_first
    length, rest = blocks.slots.shape[-1] - num_first, array.shape[-1:]
    # *B S D -> *B N F D: each block is led by a copy of the first slots.
    begins = array[..., None, :num_first, :]
    begins = jnp.broadcast_to(begins, (*array.shape[:-2], number, num_first, *rest))
    if number == 1:
        start = blocks.slots[0, num_first]
        piece = jax.lax.dynamic_slice_in_dim(array, start, length, axis=-2)
        return jnp.concatenate([begins, piece[..., None, :, :]], axis=-2)
    per_block = -(-length // size)  # pieces of `size` slots that a block is made of
    total = (number + per_block - 1) * size
    widths = [(0, 0)] * (array.ndim - 2) + [(band.before, total), (0, 0)]
    start = blocks.positions[0, 0]  # the slots of the first block start here, so padded
    pieces = jax.lax.dynamic_slice_in_dim(jnp.pad(array, widths), start, total, axis=-2)
    # *B (N + P - 1) Q D: block n is made of the pieces n .. n + P - 1, P of them in a block.
    pieces = pieces.reshape(*array.shape[:-2], number + per_block - 1, size, *rest)
    parts = [pieces[..., index : index + number, :, :] for index in range(per_block)]  # *B N Q D
    joined = jnp.concatenate(parts, axis=-2)[..., :length, :]
    return jnp.concatenate([begins, joined], axis=-2)


def reach(band: Band, blocks: Blocks) -> Bool[Array, "N Q K"]:
    """Band mask of blocks: tells where a query may read a slot, whether or not the slot exists."""
    slots = blocks.slots[:, None, :]
    offset = slots - blocks.positions[..., None]
    is_begin = jnp.arange(slots.shape[-1]) < blocks.num_first
    # The first slots count where they lead the block, not where they come again.
    is_near = (offset >= -band.before) & (slots >= band.first)
    return (offset <= band.after) & (is_begin | is_near)


def rows_of_blocks(
    rows: Shaped[Array, "*#B #T S"], blocks: Blocks, num_queries: int
) -> Shaped[Array, "*#B N Q K"]:
    """Cuts the blocks out of an array with a value for every query and slot, such as a bias.

    Beyond the last query, and for slots that do not exist, it may hold anything.
    """
    rows = jnp.broadcast_to(rows, (*rows.shape[:-2], num_queries, rows.shape[-1]))
    by_block = split_queries(rows, blocks)
    # N K -> N 1 K: all queries of a block read the same slots.
    index = jnp.clip(blocks.slots, 0, rows.shape[-1] - 1)[:, None, :]
    return jnp.take_along_axis(by_block, index.reshape((1,) * (rows.ndim - 2) + index.shape), -1)


def join(
    output: AttentionOutput, band: Band, blocks: Blocks, num_queries: int, num_slots: int
) -> AttentionOutput:
    """Puts the blocks' answers back into one sequence of queries and slots.

    Args:
      output: Context `*B N Q Dv`, weights and scores `*B N Q K`.
      band: What a query could read.
      blocks: The layout.
      num_queries: T.
      num_slots: S.

    Returns:
      Context `*B T Dv`, weights and scores `*B T S`, which are zero outside the band.
    """

    def by_query(array: Array) -> Array:
        *batch, number, size, width = array.shape  # *B N Q D -> *B T D
        flat = array.reshape(*batch, number * size, width)
        return flat[..., :num_queries, :]

    nowhere = -1  # for a slot may be in a block twice, at most once within reach
    slots = by_query(jnp.where(reach(band, blocks), blocks.slots[:, None, :], nowhere))

    def by_slot(array: Array) -> Array:
        found = by_query(array)
        return scatter_window(found, jnp.broadcast_to(slots, found.shape), num_slots)

    # `*B N Q` has no slot axis, which `by_query` expects.
    counted = by_query(output.aux["reach"][..., None])[..., 0]
    read = {name: by_slot(output.aux[name]) for name in ("read",) if name in output.aux}
    return dataclasses.replace(
        output,
        context=by_query(output.context),
        weights=by_slot(output.weights),
        scores=by_slot(output.scores),
        aux={**output.aux, "reach": counted, **read},
    )
