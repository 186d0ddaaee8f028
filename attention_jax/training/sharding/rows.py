"""Rows of a batch: filled up until they can be shared evenly, and sent to their devices."""

from collections.abc import Mapping

import jax
import numpy as np
from jax.sharding import Mesh

from attention_jax.errors import ConfigError
from attention_jax.training.sharding.mesh import BATCH_AXES, batch_sharding


def pad_rows(batch: Mapping[str, np.ndarray], multiple: int) -> dict[str, np.ndarray]:
    """Adds filler rows (zeros, masks False, index -1) up to a multiple of `multiple` rows."""
    rows = next(iter(batch.values())).shape[0]
    missing = -rows % multiple
    if not missing:
        return dict(batch)
    return {
        name: np.pad(
            array,
            [(0, missing)] + [(0, 0)] * (array.ndim - 1),
            constant_values=-1 if name == "index" else 0,
        )
        for name, array in batch.items()
    }


def shard_batch(batch: Mapping[str, np.ndarray], mesh: Mesh) -> dict[str, jax.Array]:
    """Sends a batch to the devices, each getting its share of the rows.

    With several processes, `batch` holds the rows of this one; see `process_share`. Their number
    must be a multiple of `local_shards`, times `accumulate_steps` for training; see `pad_rows`.
    """
    sharding = batch_sharding(mesh)
    return {
        name: jax.make_array_from_process_local_data(sharding, np.asarray(array))
        for name, array in batch.items()
    }


def local_shards(mesh: Mesh) -> int:
    """Returns into how many parts the rows of this process are split."""
    return len(_shards_by_process(mesh)[jax.process_index()])


def process_share(mesh: Mesh) -> tuple[int, int]:
    """Returns (index, count): this process has share `index`, from 0, of `count` of every batch.

    Processes that hold parts of one model, and not of one batch, have the same share.

    Raises:
      ConfigError: If shares overlap without being the same.
    """
    by_process = _shards_by_process(mesh)
    shares = sorted(set(by_process.values()))
    if sum(map(len, shares)) != len(set().union(*shares)) or len(set(map(len, shares))) != 1:
        raise ConfigError(
            "config.sharding.tensor: expected a size for which processes have the same rows of a "
            f"batch or none in common, found {mesh.shape['tensor']} on {len(by_process)} processes "
            f"of {mesh.size // len(by_process)} devices"
        )
    return shares.index(by_process[jax.process_index()]), len(shares)


def _shards_by_process(mesh: Mesh) -> dict[int, tuple[int, ...]]:
    """Returns which parts of a batch the devices of each process hold."""
    shards: dict[int, set[int]] = {}
    by_shard = mesh.devices.reshape(-1, mesh.shape["tensor"])
    assert mesh.axis_names[: len(BATCH_AXES)] == BATCH_AXES
    for shard, devices in enumerate(by_shard):
        for device in devices:
            shards.setdefault(device.process_index, set()).add(shard)
    return {process: tuple(sorted(found)) for process, found in shards.items()}
