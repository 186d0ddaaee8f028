"""Structural biases: features of where a slot stands and of what was attended to around it.

They enter an additive score's hidden layer beside the query and the key.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.ops.positions import positions_of_slots, slots_at
from attention_jax.types import Memory


def query_position(positions: Int[Array, "*T"]) -> Float[Array, "*T"]:
    """Position bias: returns log(1 + t), the target's share of it.

    Source:
      Cohn et al. (2016), section 3.1: psi(j, i, I), first entry.
    """
    return jnp.log1p(positions.astype(float))


def slot_positions(
    mask: Bool[Array, "*B S"], positions: Int[Array, "S"] | None = None, *, first: int = 0
) -> Float[Array, "*B S 2"]:
    """Position bias: returns log(1 + s) and log(1 + S) of each slot, S being that of real slots.

    Args:
      mask: True at real slots.
      positions: Where each slot stands in its sequence; at its index if not given.
      first: s of the first position; as many more count in S.

    Source:
      Cohn et al. (2016), section 3.1: psi(j, i, I), second and third entry. The target's length
      is left out, for it is unknown when decoding.
    """
    positions = jnp.arange(mask.shape[-1]) if positions is None else positions
    positions = jnp.maximum(positions, 0)  # of padding before the first word, maybe
    places = jnp.log1p((first + positions).astype(float))  # S, or *B S
    lengths = jnp.log1p((first + mask.sum(axis=-1, keepdims=True)).astype(float))
    return jnp.stack(jnp.broadcast_arrays(places, lengths * jnp.ones_like(places)), axis=-1)


def neighbourhood(
    values: Float[Array, "*B S"], reach: int, memory: Memory | None = None
) -> Float[Array, "*B S W"]:
    """Neighbourhood: returns the values from `reach` slots before each slot to `reach` after it.

    window[s, k] = values[s + k - reach], and zero outside

    Args:
      values: One for each slot: the previous weights, or their sum so far.
      reach: How many neighbours to either side.
      memory: Says where its slots stand; in the order of their indices if not given.

    Source:
      Cohn et al. (2016), sections 3.2 and 3.3: xi_1 and xi_2, with k = 1 there.
    """
    if memory is not None and "positions" in memory.aux:
        return _neighbourhood_by_position(values, reach, memory)
    size = values.shape[-1]
    widths = [(0, 0)] * (values.ndim - 1) + [(reach, reach)]
    padded = jnp.pad(values, widths)  # what lies outside has received nothing
    shifted = [padded[..., start : start + size] for start in range(2 * reach + 1)]
    return jnp.stack(shifted, axis=-1)  # 2 reach + 1 of *B S -> *B S W


def _neighbourhood_by_position(values: Array, reach: int, memory: Memory) -> Array:
    size, offsets = values.shape[-1], jnp.arange(-reach, reach + 1)
    # By position: neighbours in the text need not stand side by side in the memory.
    near = positions_of_slots(memory)[..., None] + offsets  # *B S W
    index = slots_at(memory, near.reshape(*near.shape[:-2], size * offsets.size))
    index = jnp.broadcast_to(index, (*values.shape[:-1], index.shape[-1]))
    # `slots_at` gives S where no slot stands, which is out of bounds and reads as zero.
    found = jnp.take_along_axis(values, index, axis=-1, mode="fill", fill_value=0.0)
    return found.reshape(*values.shape[:-1], size, offsets.size)
