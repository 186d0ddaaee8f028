"""Memory per device: how much of a training state each device holds."""

import collections
from collections.abc import Mapping
from typing import Any

import jax

from attention_jax.devices.strategy import Strategy
from attention_jax.updates.state import TrainState

_MB = 1e6


def held_bytes(tree: Any) -> tuple[int, int]:
    """Returns (bytes, bytes on a device): of all of a tree's arrays, and the most that one holds.

    The second number is counted on the devices of this process, copies included.
    """
    leaves, held = jax.tree.leaves(tree), collections.Counter()
    for leaf in leaves:
        for shard in leaf.addressable_shards:
            held[shard.device] += shard.data.nbytes
    return sum(leaf.nbytes for leaf in leaves), max(held.values(), default=0)


def describe_held(strategy: Strategy, state: TrainState) -> dict[str, Any]:
    """Returns how a state is spread over devices, as `run.json` says it."""
    parameters, parameters_held = held_bytes(state.params)
    optimizer, optimizer_held = held_bytes((state.optimizer, state.average))
    return {
        "strategy": strategy.name,
        "mesh": dict(strategy.mesh.shape),
        "parameter_bytes": parameters,
        "parameter_bytes_per_device": parameters_held,
        "optimizer_bytes": optimizer,
        "optimizer_bytes_per_device": optimizer_held,
    }


def held_line(facts: Mapping[str, Any]) -> str:
    """Returns what `describe_held` found as a line for the screen."""
    mesh = " x ".join(f"{axis} {size}" for axis, size in facts["mesh"].items())
    return (
        f"{facts['strategy']}, {mesh}: a device holds {_of(facts, 'parameter')} of parameters and "
        f"{_of(facts, 'optimizer')} of optimiser state"
    )


def _of(facts: Mapping[str, Any], kind: str) -> str:
    held, whole = facts[f"{kind}_bytes_per_device"], facts[f"{kind}_bytes"]
    if held == whole:
        return f"{whole / _MB:.1f} MB"
    return f"{held / _MB:.1f} of {whole / _MB:.1f} MB"
