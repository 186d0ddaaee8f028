"""Data parallelism: rows of a batch, padded until they can be shared, sent to their devices."""

from collections.abc import Mapping

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Int

from attention_jax.devices.mesh import BATCH_AXES, batch_sharding
from attention_jax.errors import ConfigError


def pad_rows(batch: Mapping[str, np.ndarray], multiple: int) -> dict[str, np.ndarray]:
    """Adds filler rows (zeros, masks False, index -1) up to a multiple of `multiple` rows."""
    rows = next(iter(batch.values())).shape[0]
    missing = -rows % multiple  # how far to the next multiple
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
    """Sends a batch to the devices, each of which gets its share of the rows.

    With several processes, `batch` holds the rows of this one; see `process_share`. Their number
    must be a multiple of `local_shards`, times `accumulate_steps` for training; see `pad_rows`.
    """
    sharding = batch_sharding(mesh)
    return {
        name: jax.make_array_from_process_local_data(sharding, np.asarray(array))
        for name, array in batch.items()
    }


def local_shards(mesh: Mesh) -> int:
    """Returns the number of parts into which the rows of this process are split."""
    return len(_shards_by_process(_processes(mesh))[jax.process_index()])


def process_share(mesh: Mesh) -> tuple[int, int]:
    """Returns (index, count): this process reads share `index`, from 0, of `count` of each batch.

    Processes whose devices hold parts of one model (tensor parallelism) read the same share.

    Raises:
      ConfigError: If shares overlap without being the same.
    """
    return share_of(jax.process_index(), _processes(mesh))


def share_of(process: int, processes: Int[np.ndarray, "shards tensor"]) -> tuple[int, int]:
    """Computes `process_share` from the processes of all devices.

    Args:
      process: The process to ask for.
      processes: The process of each device; a row for each part into which a batch is split.
    """
    by_process = _shards_by_process(processes)
    shares = sorted(set(by_process.values()))
    # Distinct shares must be a partition of the parts into shares of equal size.
    if sum(map(len, shares)) != len(processes) or len(set(map(len, shares))) != 1:
        raise ConfigError(
            "config.sharding.tensor: expected a size with which two processes have the same rows "
            f"of a batch or none in common, and all equally many, found {processes.shape[1]} on "
            f"{len(by_process)} processes of {processes.size // len(by_process)} devices"
        )
    return shares.index(by_process[process]), len(shares)


def _processes(mesh: Mesh) -> Int[np.ndarray, "shards tensor"]:
    assert mesh.axis_names[: len(BATCH_AXES)] == BATCH_AXES
    processes = [device.process_index for device in mesh.devices.flat]
    # data fsdp tensor -> data*fsdp tensor: a batch is split over the first two axes together.
    return np.reshape(processes, (-1, mesh.shape["tensor"]))


def _shards_by_process(processes: np.ndarray) -> dict[int, tuple[int, ...]]:
    """Returns for each process the parts of a batch that its devices hold."""
    shards: dict[int, set[int]] = {}
    for (shard, _), process in np.ndenumerate(processes):
        shards.setdefault(int(process), set()).add(shard)
    return {process: tuple(sorted(found)) for process, found in shards.items()}
