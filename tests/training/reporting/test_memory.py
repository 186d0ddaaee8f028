"""Memory is that of the fullest device, or of the process where devices keep no account."""

import mmap

import jax

from attention_jax.training.reporting.memory import memory_in_use, resident_bytes


class Device:
    """A device with an account of its memory."""

    def __init__(self, account):
        self._account = account

    def memory_stats(self):
        return self._account


def test_the_fullest_device_counts():
    devices = [
        Device({"bytes_in_use": 5, "peak_bytes_in_use": 9}),
        Device({"bytes_in_use": 7, "peak_bytes_in_use": 8}),
    ]
    assert memory_in_use(devices) == {"memory/device": 7.0, "memory/device_peak": 9.0}


def test_without_an_account_the_process_counts():
    in_use = memory_in_use([Device(None)])
    assert set(in_use) == {"memory/host", "memory/host_peak"}
    assert 2**24 < in_use["memory/host"] <= 1.01 * in_use["memory/host_peak"] < 2**40


def test_real_devices_answer():
    assert memory_in_use(jax.local_devices())


def test_resident_bytes_grow_with_what_is_kept():
    size = 2**26
    # Not from memory that this process was given before and keeps for itself.
    with mmap.mmap(-1, size) as kept:
        before = resident_bytes()
        kept.write(b"1" * size)
        assert resident_bytes() - before > 0.9 * size
