"""Where arrays live: a mesh of devices, the batch split over it, the state copied to each.

XLA derives the communication from these placements alone, so the functions that are jitted are
those of one device. To split parameters too, give the mesh further axes and let
`state_shardings` choose a PartitionSpec by a leaf's path: nothing else depends on it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from attention_jax.training.state import TrainState
from attention_jax.training.step import EvalStep, TrainStep

DATA_AXIS = "data"


def make_mesh(devices: Sequence[jax.Device] | None = None) -> Mesh:
    """Returns a mesh of all devices, or of those given, along the axis `data`."""
    devices = jax.devices() if devices is None else devices
    return Mesh(np.asarray(devices), (DATA_AXIS,), axis_types=(AxisType.Auto,))


def replicated(mesh: Mesh) -> NamedSharding:
    """Returns the placement of a copy on every device."""
    return NamedSharding(mesh, PartitionSpec())


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """Returns the placement of arrays whose leading axis is the batch."""
    return NamedSharding(mesh, PartitionSpec(DATA_AXIS))


def state_shardings(shapes: Any, mesh: Mesh) -> Any:
    """Returns the placement of every leaf of a state, given its `jax.eval_shape`."""
    return jax.tree.map(lambda _: replicated(mesh), shapes)


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

    With several processes, `batch` holds the rows of this one. The number of rows must be a
    multiple of this process's devices, times `accumulate_steps` for training; see `pad_rows`.
    """
    sharding = batch_sharding(mesh)
    return {
        name: jax.make_array_from_process_local_data(sharding, np.asarray(array))
        for name, array in batch.items()
    }


def jit_train_step(train_step: TrainStep, mesh: Mesh, shardings: Any) -> TrainStep:
    """Compiles a train step for a mesh; the state that it is given is used up.

    Args:
      train_step: From `make_train_step`.
      mesh: The devices.
      shardings: Placement of the `TrainState`, from `state_shardings`.
    """
    copy = replicated(mesh)
    return jax.jit(
        train_step,
        in_shardings=(shardings, batch_sharding(mesh), copy),
        out_shardings=(shardings, copy),
        donate_argnums=0,
    )


def jit_eval_step(eval_step: EvalStep, mesh: Mesh, shardings: TrainState) -> EvalStep:
    """Compiles an evaluation step for a mesh; the metrics are copied to every device."""
    return jax.jit(
        eval_step,
        in_shardings=(shardings.params, batch_sharding(mesh)),
        out_shardings=replicated(mesh),
    )
