"""Positional encodings, rotations, and distances between queries and slots.

A slot stands at the position that `make_memory` was given for it, which may be any; at its index
where none was given. What reads where a slot stands asks `positions_of_slots`, and finds the slot
that stands somewhere by `slots_at`.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from attention_jax.types import Memory


def sinusoidal_positions(
    positions: Int[Array, "*T"], depth: int, layout: str = "interleaved"
) -> Float[Array, "*T {depth}"]:
    """Sinusoidal positions: codes of sines and cosines whose wavelengths grow geometrically.

      code[p, 2i]     = sin(p / 10000^(2i / depth))
      code[p, 2i + 1] = cos(p / 10000^(2i / depth))

    Args:
      positions: Indices.
      depth: How many channels; the last sine stays alone where it is odd.
      layout: `interleaved` as above, or `halves`: all sines, then all cosines.

    Returns:
      Codes in float32, or float64 under `jax_enable_x64`.

    Source:
      Vaswani et al. (2017), section 3.5; `halves` as in Marian (Junczys-Dowmunt et al. 2018).
      (tensor2tensor, too, puts all sines first, but spaces the wavelengths a little differently.)
    """
    channel = jnp.arange(0, depth, 2, dtype=float)  # 2i of the formulas
    angle = positions.astype(float)[..., None] * 10000.0 ** (-channel / depth)  # *T D/2
    if layout == "halves":
        return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1)[..., :depth]
    pairs = jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1)
    # Interleaved, sine before cosine; an odd depth ends in a sine.
    return pairs.reshape(*positions.shape, 2 * channel.size)[..., :depth]


def rotate(
    vectors: Float[Array, "*B T D"], positions: Int[Array, "T"], base: float, layout: str
) -> Float[Array, "*B T D"]:
    """Rotary positions (RoPE): rotates pairs of channels by angles that grow with the position.

      (x_k, y_k) -> rotation by p base^(-2k / D) of (x_k, y_k)

    The dot product of two rotated vectors depends on the distance of their positions only.

    Args:
      vectors: Queries or keys, of even depth.
      positions: Index of each vector.
      base: Of the geometric series of angles.
      layout: Which channels form a pair: `interleaved` (2k, 2k + 1) or `halves` (k, k + D/2).

    Returns:
      Rotated vectors of the same type; angles are float32 at least.

    Source:
      Su et al. (2021), eq. 34; `halves` as in GPT-NeoX.
    """
    half = vectors.shape[-1] // 2
    angle = positions.astype(float)[:, None] * base ** (-jnp.arange(half) / half)  # T D/2
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    if layout == "halves":
        x, y = vectors[..., :half], vectors[..., half:]
        rotated = jnp.concatenate([x * cos - y * sin, x * sin + y * cos], axis=-1)
    else:
        x, y = vectors[..., 0::2], vectors[..., 1::2]
        rotated = jnp.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)
        # *B T D/2 2 -> *B T D, each pair back at its own channels.
        rotated = rotated.reshape(vectors.shape)
    return rotated.astype(vectors.dtype)


def alibi_slopes(num_heads: int, steepness: float = 8.0) -> np.ndarray:
    """ALiBi slopes: returns how steeply each head's scores fall with distance.

      slope[h] = 2^(-steepness h / n), h = 1 .. n, for n heads, n a power of two

    Otherwise those of the power of two below, then every second one of the next power's.

    Source:
      Press, Smith and Lewis (2022), section 3, and the authors' code for other numbers.
    """
    below = 2 ** int(np.log2(num_heads))  # the power of two below
    slopes = 2.0 ** (-steepness * np.arange(1, below + 1) / below)
    finer = 2.0 ** (-steepness * np.arange(1, 2 * below + 1) / (2 * below))
    return np.concatenate([slopes, finer[::2]])[:num_heads]


def relative_buckets(num_buckets: int, max_distance: int, *, both_ways: bool) -> np.ndarray:
    """Relative position buckets: returns that of each distance, near ones alone, far ones together.

    Of b buckets for a direction, the first b / 2 are of the distances below b / 2, and the others
    grow geometrically up to `max_distance`, from which on the last one holds.

    Args:
      num_buckets: How many there are; half of them for slots behind a query with `both_ways`.
      max_distance: See above.
      both_ways: Whether slots behind a query are told from those before it; else they count as 0.

    Returns:
      int32, for the offsets -max_distance to max_distance; those beyond are as these.

    Source:
      Raffel et al. (2020), section 2.1, and the authors' code.
    """
    one_way = num_buckets // 2 if both_ways else num_buckets
    exact = one_way // 2
    distance = np.arange(max_distance + 1)
    # A little more, lest a power that should be whole be rounded down.
    growth = np.log(np.maximum(distance, 1) / exact) / np.log(max_distance / exact)
    far = np.floor(exact + growth * (one_way - exact) + 1e-6)
    buckets = np.where(distance < exact, distance, np.minimum(far, one_way - 1)).astype(np.int32)
    behind = buckets[1:] + one_way if both_ways else np.zeros(max_distance, np.int32)
    return np.concatenate([buckets[:0:-1], buckets[:1], behind]).astype(np.int32)


def slot_offsets(memory: Memory, positions: Int[Array, "*N Q"]) -> Int[Array, "..."]:
    """Relative positions: returns how far after each query every slot stands.

    The shape is that of scores but for leading axes: `T S`; inside windows, where each query has
    a memory of its own, `*B T 1 W`; inside blocks of queries `N Q K`.
    """
    # Slots on the last axis and queries before it, as in scores.
    return positions_of_slots(memory)[..., None, :] - positions[..., None]


def positions_of_slots(memory: Memory) -> Int[Array, "..."]:
    """Absolute positions: returns where every slot stands, `S`, or shaped as the memory's mask.

    Inside windows that is `*B T W`, inside blocks of queries `N K`, also outside the sequence.
    """
    # Inside a window its own `slots` win over what the whole memory was given.
    for name in ("slots", "positions"):
        if name in memory.aux:
            return memory.aux[name]
    return jnp.arange(memory.mask.shape[-1])


def at_indices(memory: Memory) -> Memory:
    """Returns a memory whose slots stand at their indices, whatever positions were given."""
    aux = {name: value for name, value in memory.aux.items() if name != "positions"}
    return dataclasses.replace(memory, aux=aux)


def slots_at(memory: Memory, positions: Int[Array, "*B N"]) -> Int[Array, "*B N"]:
    """Returns the index of the slot at each position, and one outside where there is none.

    Args:
      memory: Of its slots that may be attended to, no two stand at one position.
      positions: Any.

    Returns:
      Indices; those below zero and those from S on are of no slot.
    """
    if "positions" not in memory.aux:
        return positions
    # Padding may stand anywhere, even where a real slot does: it must not be found.
    size, nowhere = memory.mask.shape[-1], np.iinfo(np.int32).max
    places = jnp.where(memory.mask, memory.aux["positions"], nowhere)
    # Padding goes to the end, at a position that nobody asks for.
    order = jnp.argsort(places, axis=-1)
    search = jnp.vectorize(_search, signature="(s),(n)->(n)")
    rank = search(jnp.take_along_axis(places, order, axis=-1), positions)
    index = _take_along(order, jnp.minimum(rank, size - 1))
    # The search finds where a position would be inserted; whether it is there has to be seen.
    return jnp.where(_take_along(places, index) == positions, index, size)


def slot_order(memory: Memory) -> Int[Array, "*#B S"] | None:
    """Returns the slots in the order of their positions; None where they stand in it."""
    if "positions" not in memory.aux:
        return None
    return jnp.argsort(memory.aux["positions"], axis=-1)


def in_order(
    rows: Shaped[Array, "*#B #T S"], order: Int[Array, "*#B S"] | None
) -> Shaped[Array, "*B #T S"]:
    """Puts what is known of each slot in an order of slots; `argsort` of that puts it back."""
    if order is None:
        return rows
    return _take_along(rows, jnp.broadcast_to(
        order[..., None, :], jnp.broadcast_shapes(rows.shape, order[..., None, :].shape)
    ))  # fmt: skip


def first_position(memory: Memory) -> Int[Array, "*#B"]:
    """Returns where the first slot stands that may be attended to; zero if there is none."""
    if "positions" not in memory.aux:
        return jnp.zeros((), jnp.int32)
    nowhere = np.iinfo(np.int32).max
    first = jnp.where(memory.mask, memory.aux["positions"], nowhere).min(-1, initial=nowhere)
    return jnp.where(first == nowhere, 0, first)  # of no slots, any position will do


def _search(ordered: Array, positions: Array) -> Array:
    # By sorting both: the number of steps of a bisection must be known, which a length may not be.
    return jnp.searchsorted(ordered, positions, method="sort")


def _take_along(
    values: Shaped[Array, "*#B S"], index: Int[Array, "*B N"]
) -> Shaped[Array, "*B N"]:
    values = jnp.broadcast_to(values, (*index.shape[:-1], values.shape[-1]))
    return jnp.take_along_axis(values, index, axis=-1)
