"""Hard monotonic attention: a pointer that the STEPs among the written symbols move to the right.

  context[t] = h[p_t];   p_1 = 0,   p_t = min(p_{t-1} + [y_{t-1} = STEP], S - 1)

Targets are actions: to write a symbol, or to STEP. Where STEPs stand in training is told by an
alignment of the symbols (`data.oracle_steps`); in a search the model writes them as it writes
symbols, and texts are made without them. The pointer counts slots, from the first, and stays on the
last one, which is that of the source's EOS in an encoder that keeps positions. There a search
writes no STEP.

A decoder whose update reads the context, such as `bahdanau`, is as in the paper: its cell is given
the last symbol and the slot that the pointer is on.
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismConfig, MechanismParts, Traits
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.step_pointer import IDLE, idle_id, slot_ranks, step_pointer
from attention_jax.ops.summation import accumulation_dtype
from attention_jax.types import Array, Call, Memory, Params, State

PAPER = "Aharoni and Goldberg (2017), Hard monotonic attention, section 2"


@dataclasses.dataclass(frozen=True)
class Config(MechanismConfig):
    """A pointer that follows the targets.

    Attributes:
      name: The mechanism.
    """

    name: str = setting("step_pointer")
    reads_keys: ClassVar[bool] = False
    reads_steps: ClassVar[bool] = True


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the mechanism, which has no parameters."""
    trackers = (("pointer", step_pointer()),)
    spec = AttentionSpec(
        _score, _as_it_is, prepare=_rank, trackers=trackers, reads=("pointer",)
    )
    return MechanismParts(spec, {}, Traits(reads_query=False, reads_length=True))


def _rank(params: Params, memory: Memory, positions: Array) -> Memory:
    """Counts the slots, once for a source."""
    ranks = slot_ranks(memory.mask, positions)
    return dataclasses.replace(memory, aux={**memory.aux, "ranks": ranks})


def _score(params: Params, query: Array, memory: Memory, state: State, positions: Array) -> Array:
    """Scores one at the pointer and zero elsewhere."""
    here = memory.aux["ranks"] == state["pointer"][..., None]  # *B S
    shape = (*query.shape[:-1], here.shape[-1])
    return jnp.broadcast_to(here[..., None, :], shape).astype(accumulation_dtype(query))


def _as_it_is(
    params: Params,
    scores: Array,
    mask: Array,
    query: Array,
    memory: Memory,
    state: State,
    *,
    positions: Array,
    call: Call,
) -> tuple[Array, Mapping[str, Array]]:
    """Keeps the scores, which are a distribution, where the mask allows."""
    idle = idle_id(state["pointer"], memory)[..., None]  # *B -> *B 1, one query at a time
    return jnp.where(mask, scores, 0.0), {IDLE: idle}
