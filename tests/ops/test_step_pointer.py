"""The pointer of hard monotonic attention, step by step."""

import jax.numpy as jnp
import numpy as np

from attention_jax.ops.step_pointer import STEP, idle_id, slot_ranks, step_pointer
from attention_jax.types import Memory, SpecialIds


def test_only_a_step_moves_the_pointer_and_the_last_slot_keeps_it():
    mask = jnp.asarray([[True, True, True], [True, True, False], [False, False, False]])
    memory = Memory(jnp.zeros((3, 3, 1)), jnp.zeros((3, 3, 1)), mask)
    tracker = step_pointer()
    value, found = tracker.init({}, memory), []
    for written in (SpecialIds.BOS, STEP, STEP + 1, STEP, STEP, SpecialIds.EOS):
        observed = {"written_id": jnp.full((3, 1), written)}
        value = tracker.observe({}, value, {}, observed, memory)
        found.append(value.tolist())
    assert found == [[0, 0, 0], [1, 1, 0], [1, 1, 0], [2, 1, 0], [2, 1, 0], [2, 1, 0]]
    assert value.dtype == jnp.int32


def test_a_step_is_idle_on_the_last_slot_alone():
    mask = jnp.asarray([[[True, True, True]], [[True, True, False]], [[False, False, False]]])
    memory = Memory(jnp.zeros((3, 1, 3, 1)), jnp.zeros((3, 1, 3, 1)), mask)  # of hypotheses, B 1
    found = idle_id(jnp.asarray([[0, 1, 2], [0, 1, 1], [0, 0, 0]]), memory)
    np.testing.assert_array_equal(found, [[0, 0, STEP], [0, STEP, STEP], [STEP] * 3])
    assert found.dtype == jnp.int32


def test_ranks_count_real_slots_by_their_positions():
    mask = jnp.asarray([[True, False, True, True], [False, True, True, False]])
    np.testing.assert_array_equal(
        slot_ranks(mask, jnp.arange(4)), [[0, 4, 1, 2], [4, 0, 1, 4]]
    )
    moved = slot_ranks(mask, jnp.asarray([9, 0, 3, 7]))
    np.testing.assert_array_equal(moved, [[2, 4, 0, 1], [4, 0, 1, 4]])
