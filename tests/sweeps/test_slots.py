"""What runs side by side have of a machine."""

import os

import pytest

from attention_jax.sweeps import slots as module
from attention_jax.sweeps.slots import Slot, slots


@pytest.fixture
def gpus(monkeypatch):
    """Sets how many GPUs there are."""
    monkeypatch.delenv("XLA_PYTHON_CLIENT_MEM_FRACTION", raising=False)

    def set_(number):
        monkeypatch.setattr(module, "visible_gpus", lambda: [f"g{n}" for n in range(number)])

    return set_


def test_a_single_run_has_everything(gpus):
    gpus(4)
    assert slots(1) == [Slot()]


@pytest.mark.parametrize(
    ("number", "jobs", "shares", "memory"),
    [
        (0, 2, [None, None], None),
        (2, 2, ["g0", "g1"], None),
        (4, 2, ["g0,g1", "g2,g3"], None),
        (5, 2, ["g0,g1", "g2,g3"], None),
        (1, 3, ["g0", "g0", "g0"], "0.300"),
        (2, 3, ["g0", "g1", "g0"], "0.450"),
    ],
)
def test_gpus_are_shared_out(gpus, number, jobs, shares, memory):
    gpus(number)
    found = [slot.environment for slot in slots(jobs)]
    assert [each.get("CUDA_VISIBLE_DEVICES") for each in found] == shares
    assert {each.get("XLA_PYTHON_CLIENT_MEM_FRACTION") for each in found} == {memory}


def test_a_share_of_memory_that_is_asked_for_counts(gpus, monkeypatch):
    gpus(1)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".2")
    assert {slot.environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] for slot in slots(2)} == {".2"}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs sched_getaffinity")
def test_cores_are_shared_out(gpus, monkeypatch):
    gpus(0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3, 8})
    assert [slot.cores for slot in slots(2)] == [[0, 1], [2, 3]]
    assert [slot.cores for slot in slots(7)] == [[0], [1], [2], [3], [8], [0], [1]]
