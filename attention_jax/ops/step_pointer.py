"""Hard monotonic attention by a pointer to one slot, which a written STEP moves to the next.

  p_1 = 0;   p_t = min(p_{t-1} + [y_{t-1} = STEP], S - 1)
  weights[t, s] = [s = p_t]

Nothing is learnt of where to attend: the targets say it, for STEPs stand between their symbols. A
STEP is told as every written symbol is, so that it takes effect on the next query. On the last slot
it changes nothing: no oracle has one there, and a search leaves it out, or it could write STEPs for
ever.
"""

from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from attention_jax.ops.attend import Tracker
from attention_jax.types import AttentionOutput, Memory, Params, SpecialIds, State

# The first symbol of a vocabulary that has one; see `data.text.symbol_kinds`.
STEP = int(SpecialIds.COUNT)

# Where attention says which id would change nothing if it were written next; `*B T`.
IDLE = "idle_id"


def step_pointer(step: int = STEP) -> Tracker:
    """Carries how many slots have been passed, the last one never.

    Args:
      step: Id of the symbol that moves the pointer.

    Returns:
      A tracker of values `*B`, int32. It reads, of what is observed, `written_id` `*B 1`.

    Source:
      Aharoni and Goldberg (2017), section 2, on the control mechanism.
    """

    def init(params: Params, memory: Memory) -> Int[Array, "*B"]:
        return jnp.zeros(memory.mask.shape[:-1], jnp.int32)

    def keep(
        params: Params, value: Array, query: Array, output: AttentionOutput, memory: Memory
    ) -> Array:
        return value

    def observe(
        params: Params, value: Array, state: State, observed: Mapping[str, Array], memory: Memory
    ) -> Array:
        moved = value + (observed["written_id"][..., 0] == step)  # *B 1 -> *B
        return jnp.minimum(moved, _last(memory)).astype(value.dtype)

    return Tracker(init, keep, observe, observes=("written_id",))


def idle_id(pointer: Int[Array, "*B"], memory: Memory, step: int = STEP) -> Int[Array, "*B"]:
    """Returns `step` where the pointer is on the last slot, which nothing moves it from, or PAD."""
    return jnp.where(pointer >= _last(memory), step, SpecialIds.PAD).astype(jnp.int32)


def _last(memory: Memory) -> Int[Array, "*B"]:
    return jnp.maximum(memory.mask.sum(-1) - 1, 0)  # 0 where there is no slot


def slot_ranks(mask: Bool[Array, "*B S"], positions: Int[Array, "S"]) -> Int[Array, "*B S"]:
    """Returns how many real slots stand before each real one; more than all of them at padding.

    Args:
      mask: True at real slots.
      positions: Index of every slot in its sequence, in any order, each index once.
    """
    behind = jnp.iinfo(positions.dtype).max
    order = jnp.argsort(jnp.where(mask, positions, behind), axis=-1)
    # The inverse of a permutation: at which place of the order each slot stands.
    ranks = jnp.argsort(order, axis=-1)
    return jnp.where(mask, ranks, mask.shape[-1]).astype(jnp.int32)
