"""Out-of-memory check: whether a training state fits its devices, before any of it is made."""

import contextlib
import math
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import jax

from attention_jax.errors import ConfigError

_GB = 1e9
_CONTAINER_LIMITS = (
    pathlib.Path("/sys/fs/cgroup/memory.max"),
    pathlib.Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def check_fits(like: Any) -> None:
    """Compares what each device is to hold with what it has.

    What a training step needs beside its state is not counted; `launch.compile_check` does that.

    Args:
      like: The shapes of a training state with their shardings.

    Raises:
      ConfigError: If the state alone is larger than the memory.
    """
    needed = sum(
        math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
        for leaf in jax.tree.leaves(like)
    )
    available = memory_of_a_device()
    if available is not None and needed > available:
        raise ConfigError(
            f"config.model: expected parameters and optimiser that fit the {available / _GB:,.1f} "
            f"GB of a device, found {needed / _GB:,.1f} GB"
        )


def memory_of_a_device() -> int | None:
    """Returns the bytes of a local device, of CPU devices their share; None where none says."""
    devices = jax.local_devices()
    if devices[0].platform == "cpu":
        return memory_of_this_machine() // len(devices)
    return (devices[0].memory_stats() or {}).get("bytes_limit")


def memory_of_this_machine(limits: Sequence[pathlib.Path] = _CONTAINER_LIMITS) -> int:
    """Returns the bytes that the machine has, or that a container may take of them.

    Args:
      limits: Files in which Linux tells a container its limit: a number, or `max` for none.
    """
    known = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in limits:
        with contextlib.suppress(OSError, ValueError):
            known.append(int(path.read_text()))
    return min(known)
