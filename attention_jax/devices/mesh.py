"""The device mesh, and placements that need to know nothing else."""

import math
from collections.abc import Sequence
from typing import Any

import jax
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from attention_jax.devices.config import AXES, REST
from attention_jax.errors import ConfigError

BATCH_AXES = ("data", "fsdp")


def make_mesh(
    devices: Sequence[jax.Device] | None = None, *, data: int = REST, fsdp: int = 1, tensor: int = 1
) -> Mesh:
    """Arranges devices in a mesh with the axes `data`, `fsdp` and `tensor`.

    Args:
      devices: All of every process if None.
      data: Devices along the axis; -1, for one of the three, takes what the others leave.
      fsdp: As `data`.
      tensor: As `data`.

    Raises:
      ConfigError: If the sizes do not multiply to the number of devices, or if these are CPUs where
        `JAX_PLATFORMS` names another platform first.
    """
    devices = jax.devices() if devices is None else devices
    wanted = jax.config.jax_platforms or ""
    # Where it sees no GPU, JAX passes over `cuda` without a word.
    if wanted.split(",")[0] not in ("", "cpu") and devices[0].platform == "cpu":
        raise ConfigError(
            f"JAX_PLATFORMS: expected devices of this machine, found {wanted!r}, of which there is "
            "only the cpu"
        )
    sizes = mesh_sizes(len(devices), (data, fsdp, tensor))
    types = (AxisType.Auto,) * len(AXES)  # the default would have models name every placement
    return jax.make_mesh(sizes, AXES, devices=devices, axis_types=types)


def replicated(mesh: Mesh) -> NamedSharding:
    """Returns the placement of an array that every device has a copy of."""
    return NamedSharding(mesh, PartitionSpec())


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """Returns the placement of arrays whose leading axis is the batch."""
    return NamedSharding(mesh, PartitionSpec(BATCH_AXES))


def fetch(tree: Any) -> Any:
    """Copies the arrays of a tree to the host; every process gets them whole.

    With several processes this is a collective, which all of them must call.
    """
    if jax.process_count() == 1:
        return jax.device_get(tree)
    return multihost_utils.process_allgather(tree, tiled=True)


def mesh_sizes(number: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Resolves the mesh sizes for a number of devices: -1 becomes what the others leave.

    Raises:
      ConfigError: If they do not multiply to the number.
    """
    known = math.prod(size for size in sizes if size != REST)
    words = " x ".join(
        f"{axis} {'rest' if size == REST else size}" for axis, size in zip(AXES, sizes, strict=True)
    )
    if REST in sizes and number % known == 0:
        return tuple(number // known if size == REST else size for size in sizes)
    if known != number:
        expected = "divide" if REST in sizes else "multiply to"
        raise ConfigError(
            f"config.sharding: expected sizes that {expected} the number of devices ({number}), "
            f"found {words}"
        )
    return sizes
