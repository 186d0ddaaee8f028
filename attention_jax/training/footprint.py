"""Memory footprint: the training step compiled for devices that are not at hand."""

import contextlib
import dataclasses
import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax

from attention_jax.data.buckets import Bucket
from attention_jax.devices.ahead_of_time.collectives import Communication, find_exchanges
from attention_jax.devices.ahead_of_time.targets import Target
from attention_jax.devices.ahead_of_time.traffic import Expected, expected_exchanges
from attention_jax.devices.mesh import BATCH_AXES
from attention_jax.runs.config import ExperimentConfig
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.assembly import Assembly, assemble

_HELP = "a smaller batch, accumulate_steps or a mesh that splits parameters would help"


class DoesNotFit(Exception):
    """The compiler found that a program needs more memory than a device has."""


@dataclasses.dataclass(frozen=True)
class Footprint:
    """What one training step takes on each device.

    Attributes:
      mesh: Sizes of the mesh's axes by name.
      shape: Rows, source and target positions of the batch of all devices together.
      parameters: How many numbers the model has.
      state: Bytes of `params`, `optimizer`, `average` and `rest` on a device.
      gradients: Bytes of the gradient of the parameters on a device, placed as they are.
      batch: Bytes of a device's share of the batch.
      temporaries: Bytes of everything between input and output: gradients, activations, copies.
      program: Bytes of the program itself, where it lies in the device's memory.
      exchanges: What is communicated.
      expected: The same by formula, from the placement of the parameters alone.
      lowered_for: The platform that the step was lowered for beside the devices', if any.
    """

    mesh: Mapping[str, int]
    shape: tuple[int, int, int]
    parameters: int
    state: Mapping[str, int]
    gradients: int
    batch: int
    temporaries: int
    program: int
    exchanges: Sequence[Communication]
    expected: Sequence[Expected]
    lowered_for: str | None = None

    @property
    def activations(self) -> int:
        """Bytes of temporaries other than gradients: activations and copies."""
        return max(0, self.temporaries - self.gradients)

    @property
    def total(self) -> int:
        """Bytes that a device needs for a step."""
        return sum(self.state.values()) + self.batch + self.temporaries + self.program


def measure(
    config: ExperimentConfig,
    directory: RunDirectory,
    devices: Sequence[jax.Device],
    platform: str | None = None,
) -> Footprint:
    """Compiles the training step ahead of time and reads its memory and its collectives.

    Compiled is the batch shape that needs the most memory.

    Bytes are those that the compiler reserves (`memory_analysis`); nothing is run. The state is
    updated in place, as in training. Where simulated devices stand in for another platform, the
    step is also lowered for that platform, which traces its own branches; `pmap` cannot do so.

    Args:
      config: The experiment.
      directory: Where its vocabularies are, or are put.
      devices: To compile for; simulated ones and those of a TPU topology will do.
      platform: `cuda`, `tpu` or `cpu`, where that is not the devices' own.

    Raises:
      UserError: If the config, the data or the mesh is at fault.
      DoesNotFit: If the compiler knows how much memory the devices have, and it is too little.
    """
    parts = assemble(config, directory, devices)
    bucket = most_demanding(parts.batches.buckets)
    batch = _batch_of(parts, bucket, config.training.accumulate_steps)
    # Only the shape of a key: lowering needs no value, and the devices may not exist.
    key = jax.eval_shape(jax.random.key, 0)
    arguments = (parts.like, batch, key)
    lowered_for = None
    if platform not in (None, devices[0].platform) and hasattr(parts.train_step, "trace"):
        parts.train_step.trace(*arguments).lower(lowering_platforms=(platform,))
        lowered_for = platform
    compiled = _compiled(parts.train_step, arguments)
    axes = dict(parts.strategy.mesh.shape)
    memory = compiled.memory_analysis()
    state = state_bytes(parts.like)
    # Donated buffers are inputs and outputs at once (`alias`), and would be counted twice.
    inputs = memory.argument_size_in_bytes + memory.output_size_in_bytes
    rest = inputs - memory.alias_size_in_bytes - sum(state.values())
    rows = math.prod(batch["index"].shape)
    return Footprint(
        mesh=axes,
        shape=(rows, bucket.source_length, bucket.target_length),
        parameters=sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(parts.like.params)),
        state=state,
        gradients=device_bytes(parts.like.params),
        batch=max(0, rest),
        temporaries=memory.temp_size_in_bytes,
        program=memory.generated_code_size_in_bytes,
        exchanges=find_exchanges(compiled.as_text(), axes),
        expected=expected_exchanges(parts.like.params, axes),
        lowered_for=lowered_for,
    )


@contextlib.contextmanager
def vocabularies(workdir: str | None) -> Iterator[RunDirectory]:
    """Yields an existing run's directory, whose vocabularies are read, or a temporary one.

    Raises:
      UserError: If there is no such run.
    """
    if workdir:
        directory = RunDirectory(workdir, writes=False)
        directory.require()
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="attention_jax_vocabularies_") as folder:
        yield RunDirectory(folder)


def require_fit(found: Footprint, target: Target) -> None:
    """Raises DoesNotFit if a step needs more memory than a device is known to have."""
    if target.memory_gib is None:
        return
    needed = found.total / 2**30
    if needed > target.memory_gib:
        raise DoesNotFit(
            f"needs {needed:.3g} GiB on each device, which has {target.memory_gib:.3g}; {_HELP}"
        )


def most_demanding(buckets: Sequence[Bucket]) -> Bucket:
    """Returns the batch shape with the most attention scores, rows x source x target."""
    return max(buckets, key=lambda b: (b.rows * b.source_length * b.target_length, b.target_length))


def state_bytes(like: Any) -> dict[str, int]:
    """Returns the bytes of a training state on one device, part by part.

    Args:
      like: A `TrainState` of shapes with placements, as in `Assembly`.
    """
    parts = {name: device_bytes(getattr(like, name)) for name in ("params", "optimizer", "average")}
    return parts | {"rest": device_bytes(like) - sum(parts.values())}


def device_bytes(tree: Any) -> int:
    """Returns the bytes of a tree of placed shapes on one device."""
    return sum(
        # The shard, not the array: a replicated leaf counts whole, a split one by its part.
        math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
        for leaf in jax.tree.leaves(tree)
    )


def _batch_of(parts: Assembly, bucket: Bucket, accumulate_steps: int) -> dict[str, Any]:
    """Returns the shapes of a batch of all processes, as the training loop would pass it."""
    lengths = bucket.source_length, bucket.target_length
    # A real batch has all fields and types of the task; only its number of rows is replaced.
    batch = next(
        batch
        for batch in parts.batches
        if (batch["source"].shape[1], batch["target"].shape[1]) == lengths
    )
    mesh = parts.strategy.mesh
    shares = math.prod(mesh.shape[axis] for axis in BATCH_AXES)
    # Rounded up, as filler rows do: -(-a // b) is the ceiling of a / b.
    rows = -(-bucket.rows // (shares * accumulate_steps)) * shares * accumulate_steps
    leading = (shares, rows // shares) if parts.strategy.name == "pmap" else (rows,)
    return {
        name: jax.ShapeDtypeStruct((*leading, *array.shape[1:]), array.dtype)
        for name, array in batch.items()
    }


def _compiled(train_step: Any, arguments: tuple) -> jax.stages.Compiled:
    try:
        return train_step.lower(*arguments).compile()
    except jax.errors.JaxRuntimeError as error:
        message = str(error)
        if "RESOURCE_EXHAUSTED" not in message:
            raise
        # Two wordings that the TPU compiler has for the same thing.
        found = re.search(r"\(([\d.]+\w)\) exceeds available HBM \(([\d.]+\w)\)", message)
        found = found or re.search(r"Used ([\d.]+\w) of ([\d.]+\w)", message)
        reason = f"needs {found[1]} on each device, which has {found[2]}" if found else message
        raise DoesNotFit(f"{' '.join(reason.split())[:200]}; {_HELP}") from None
