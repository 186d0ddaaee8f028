"""How a machine is described."""

import os

from experiments.kit import machine


def test_hardware_names_this_machine():
    found = machine.hardware()
    assert found["cpu"] and found["memory_gib"] >= 0
    assert found["cores"] == len(os.sched_getaffinity(0))


def test_an_accelerator_is_named_before_the_processor():
    hardware = {"cpu": "abacus", "cores": 2}
    assert machine.named(hardware) == "abacus, 2 cores"
    assert machine.named(hardware, "loom") == "loom beside abacus, 2 cores"
