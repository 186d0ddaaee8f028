"""Memory per device: how much of a training state each device holds, and whether it fits."""

import collections
import math
from collections.abc import Mapping
from typing import Any

import jax

from attention_jax.devices.host_memory import memory_of_this_machine
from attention_jax.devices.strategy import Strategy
from attention_jax.errors import ConfigError
from attention_jax.updates.state import TrainState

_MB, _GB = 1e6, 1e9


def check_fits(like: Any) -> None:
    """Out-of-memory check: compares a training state with a device's memory, before it is made.

    What a training step needs beside its state is not counted; `launch.compile_check` does that.

    Args:
      like: The shapes of a training state with their shardings.

    Raises:
      ConfigError: If the state alone is larger than the memory.
    """
    # The shard, not the array: a replicated leaf counts whole, a split one by its part.
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
    """Returns the bytes of a local device; None where it does not say.

    Simulated CPU devices share the machine's memory, so each counts with its part of it.
    """
    devices = jax.local_devices()
    if devices[0].platform == "cpu":
        return memory_of_this_machine() // len(devices)
    return (devices[0].memory_stats() or {}).get("bytes_limit")


def count_bytes(tree: Any) -> tuple[int, int]:
    """Returns (bytes, bytes on a device): of all of a tree's arrays, and the most that one holds.

    The second number is counted on the devices of this process, copies included.
    """
    leaves, on_device = jax.tree.leaves(tree), collections.Counter()
    for leaf in leaves:
        # Of other processes' devices nothing is known here; all hold equally much.
        for shard in leaf.addressable_shards:
            on_device[shard.device] += shard.data.nbytes
    return sum(leaf.nbytes for leaf in leaves), max(on_device.values(), default=0)


def describe_sharding(strategy: Strategy, state: TrainState) -> dict[str, Any]:
    """Describes how a state is spread over devices, as `run.json` has it."""
    parameters, parameters_on_one = count_bytes(state.params)
    optimizer, optimizer_on_one = count_bytes((state.optimizer, state.average))
    return {
        "strategy": strategy.name,
        "device": strategy.mesh.devices.flat[0].device_kind,
        "mesh": dict(strategy.mesh.shape),
        "parameter_bytes": parameters,
        "parameter_bytes_per_device": parameters_on_one,
        "optimizer_bytes": optimizer,
        "optimizer_bytes_per_device": optimizer_on_one,
    }


def sharding_line(facts: Mapping[str, Any]) -> str:
    """Formats what `describe_sharding` returned as a line for the screen."""
    kinds = {"parameter": "parameters", "optimizer": "optimiser state"}
    held = " and ".join(f"{_of(facts, kind)} of {called}" for kind, called in kinds.items())
    number = math.prod(facts["mesh"].values())
    if number == 1:  # nothing is spread
        return f"on one device ({facts['device']}), which holds {held}"
    mesh = " x ".join(f"{axis} {size}" for axis, size in facts["mesh"].items())
    return f"{facts['strategy']} on {number} x {facts['device']}, {mesh}: a device holds {held}"


def _of(facts: Mapping[str, Any], kind: str) -> str:
    on_one, whole = facts[f"{kind}_bytes_per_device"], facts[f"{kind}_bytes"]
    if on_one == whole:
        return f"{whole / _MB:.1f} MB"
    return f"{on_one / _MB:.1f} of {whole / _MB:.1f} MB"
