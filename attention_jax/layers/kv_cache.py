"""KV cache: keys and values of the positions written so far, in an autoregressive search.

A cache is the memory that self-attention makes, with room for all positions from the start; its
mask says which were written. One position's keys and values are projected once, when it is written.
"""

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Float, Int

from attention_jax.layers.encoder import sequence
from attention_jax.layers.mechanism import Mechanism
from attention_jax.ops.positions import at_indices
from attention_jax.types import Array, AttentionOutput, Memory, Params, State


def empty_cache(
    mechanism: Mechanism, params: Params, shape: tuple[int, int, int], dtype: DTypeLike
) -> Memory:
    """KV cache: returns an empty one, for vectors of shape (batch, positions, depth)."""
    # Made as any memory is, so that its arrays have the shapes that later entries will have.
    blank, mask = jnp.zeros(shape, dtype), jnp.zeros(shape[:2], bool)
    return mechanism.make_memory(params, sequence(blank, mask))


def write(
    mechanism: Mechanism,
    params: Params,
    cache: Memory,
    vectors: Float[Array, "*B 1 D"],
    position: Int[Array, "1"],
) -> Memory:
    """KV cache: writes the keys and values of one position, and returns the new cache."""
    here = jnp.ones((*vectors.shape[:-2], 1), bool)  # *B 1: the one slot is real
    new = mechanism.make_memory(params, sequence(vectors, here), position)
    new = at_indices(new)  # as every token of the past is written at its own
    return jax.tree.map(lambda room, entry: put(room, entry, position[0]), cache, new)


def attend_to_one(
    mechanism: Mechanism,
    params: Params,
    query: Float[Array, "*B 1 Dq"],
    memory: Memory,
    state: State,
    positions: Int[Array, "1"],
) -> tuple[AttentionOutput, State]:
    """Decoding step: answers one query of each row, mapped over the batch axes from outside.

    The axes of a head's products are then in the order of `memory`, heads behind the batch. In that
    of `mechanism.attend`, heads come first, and all of the memory is transposed for it: no loss
    where it is as small as the queries, but most of the time for one query beside a cache.
    """
    if query.ndim == 2:
        return mechanism.attend(params, query, memory, state, positions=positions)
    # A leading axis of one, beside several rows: hypotheses that share a source.
    shared = jax.tree.map(lambda leaf: leaf.shape[0] != query.shape[0], (memory, state))
    rest = jax.tree.map(
        lambda leaf, is_shared: leaf[0] if is_shared else leaf, (memory, state), shared
    )
    axes = jax.tree.map(lambda is_shared: None if is_shared else 0, shared)

    def one_row(query: Array, memory: Memory, state: State) -> tuple[AttentionOutput, State]:
        return attend_to_one(mechanism, params, query, memory, state, positions)

    return jax.vmap(one_row, (0, *axes))(query, *rest)


def put(room: Array, entry: Array, position: Array) -> Array:
    """Writes one position's entry, keys `*B 1 D` or mask `*B 1`, into the room for all positions.

    The axis of the positions is the one in which the two differ. Where none does, there is room
    for one position only, which the entry fills.
    """
    for axis, (size, one) in enumerate(zip(room.shape, entry.shape, strict=True)):
        if size != one:
            return jax.lax.dynamic_update_slice_in_dim(room, entry, position, axis)
    return entry
