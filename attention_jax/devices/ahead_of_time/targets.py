"""Topologies of devices that are not at hand, to compile for ahead of time.

For a TPU slice the TPU's own compiler is used, which needs the package libtpu but no TPU. For
everything else, and without libtpu, CPU devices are simulated: placements and collectives are the
same, temporaries are those of XLA's CPU compiler.
"""

import dataclasses
import difflib
import importlib.metadata
import math
import os
import re

import jax

from attention_jax.errors import UserError

# Gigabytes of device memory, as the makers state them.
_TPU_MEMORY = {"v4": 32, "v5e": 16, "v5p": 95, "v6e": 32}
_GPU_MEMORY = {
    "t4": 16, "l4": 24, "a100-40g": 40, "a100-80g": 80, "h100": 80, "h200": 141,
}  # fmt: skip
# Shapes of slices that can be had, as the maker's pages on v4, v5e, v5p and v6e list them.
_FLAT_SLICES = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
_CPU = "cpu"
_MOST_DEVICES = 4096
# Both TensorCores of a chip appear as one device, as they do on the machine.
_TPU_CHIP = {"v4": "megacore", "v5p": "megacore"}

# Keeps libtpu from asking the cloud's metadata server, from writing logs, and from warning that
# there is no TPU.
_LIBTPU_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "TPU_LOG_DIR": "disabled",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
}


@dataclasses.dataclass(frozen=True)
class Target:
    """The devices that a training is meant to run on.

    Attributes:
      name: As it was given, such as `v5e:4x4` or `h100:16`.
      kind: The part before the colon.
      shape: Devices along each axis of the interconnect; one number if that does not matter.
      slices: Number of such slices, joined by the data centre's network.
      memory_gib: Memory of a device in GiB; None if unknown.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    slices: int
    memory_gib: float | None

    @property
    def devices(self) -> int:
        """Number of devices in all slices together."""
        return math.prod(self.shape) * self.slices

    @property
    def is_tpu(self) -> bool:
        """Whether the target is a TPU, for which the TPU's compiler can be used."""
        return self.kind in _TPU_MEMORY

    @property
    def platform(self) -> str:
        """The platform that programs are lowered for: `tpu`, `cuda` or `cpu`."""
        return "tpu" if self.is_tpu else "cuda" if self.kind in _GPU_MEMORY else _CPU


def parse_target(text: str, slices: int = 1, memory_gib: float | None = None) -> Target:
    """Reads the name of a topology.

    Args:
      text: `KIND:AxB` or `KIND:AxBxC` for a TPU slice, `KIND:COUNT` for GPUs, `cpu:COUNT`.
      slices: Number of such slices.
      memory_gib: Memory of a device, if not as the makers state it.

    Raises:
      UserError: If there is no such kind of device, or the shape does not suit it.
    """
    kind, _, size = text.lower().partition(":")
    kinds = [*_TPU_MEMORY, *_GPU_MEMORY, _CPU]
    if kind not in kinds:
        near = difflib.get_close_matches(kind, kinds, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UserError(f"--topology: expected one of {', '.join(kinds)}, found {kind!r}{hint}")
    example = {"v5e": "v5e:4x4", "v6e": "v6e:4x4", "v4": "v4:2x2x2", "v5p": "v5p:2x2x2"}
    wanted = example.get(kind, f"{kind}:16")
    axes = wanted.count("x") + 1  # those of the chips' network
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", size) or len(size.split("x")) != axes:
        raise UserError(f"--topology: expected a shape as in {wanted}, found {text!r}")
    shape = tuple(int(part) for part in size.split("x"))
    if kind in _TPU_MEMORY and not _is_slice(shape):
        slices_known = ", ".join("x".join(map(str, each)) for each in _FLAT_SLICES)
        offered = slices_known if axes == 2 else (
            "2x2x1, or AxBxC from the smallest to the largest, all 2 or 4 or all multiples of 4"
        )  # fmt: skip
        raise UserError(f"--topology: expected a slice of {kind} ({offered}), found {text!r}")
    gigabytes = {**_TPU_MEMORY, **_GPU_MEMORY}.get(kind)
    if memory_gib is None and gigabytes is not None:
        # Makers count gigabytes of 10^9 bytes, compilers gibibytes of 2^30.
        memory_gib = gigabytes * 1e9 / 2**30
    target = Target(text, kind, shape, slices, memory_gib)
    if target.devices > _MOST_DEVICES:
        raise UserError(
            f"--topology: expected at most {_MOST_DEVICES} devices, found {target.devices}"
        )
    return target


def _is_slice(shape: tuple[int, ...]) -> bool:
    """Whether a slice of a TPU may have this shape; those of three axes are built of cubes."""
    if len(shape) == 2:
        return shape in _FLAT_SLICES
    in_cube = all(size in (2, 4) for size in shape)
    of_cubes = all(size % 4 == 0 for size in shape)
    return shape == (2, 2, 1) or list(shape) == sorted(shape) and (in_cube or of_cubes)


def devices_of(target: Target, compiler: str = "auto") -> tuple[list[jax.Device], str]:
    """Returns devices to compile for, and a description of their compiler.

    To be called before anything else touches a device.

    Args:
      target: From `parse_target`.
      compiler: `tpu`, `cpu`, or `auto` for the TPU's compiler if possible.

    Raises:
      UserError: If the compiler is not installed, or does not know the topology.
    """
    version = _libtpu()
    if compiler == "tpu" and not target.is_tpu:
        raise UserError(f"--compiler: expected cpu for {target.name}, found tpu")
    if compiler == "tpu" and version is None:
        raise UserError("--compiler: tpu needs the package libtpu (pip install 'jax[tpu]')")
    jax.config.update("jax_platforms", "cpu")
    if target.is_tpu and version is not None and compiler != "cpu":
        return _tpu_devices(target), f"the TPU compiler (libtpu {version})"
    line = f"{target.devices} simulated CPU devices (temporaries are those of the CPU's compiler)"
    return simulated_devices(target.devices), line


def simulated_devices(number: int) -> list[jax.Device]:
    """Simulates CPU devices, in a process that has not used any device yet."""
    jax.config.update("jax_platforms", "cpu")
    if jax.config.jax_num_cpu_devices < number:
        jax.config.update("jax_num_cpu_devices", number)
    devices = jax.devices()
    if len(devices) < number:
        raise UserError(
            f"expected {number} simulated devices, found {len(devices)} (is XLA_FLAGS set?)"
        )
    return devices[:number]


def _libtpu() -> str | None:
    try:
        return importlib.metadata.version("libtpu")
    except importlib.metadata.PackageNotFoundError:
        return None


def _tpu_devices(target: Target) -> list[jax.Device]:
    from jax.experimental import topologies

    for name, value in _LIBTPU_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    shape = "x".join(map(str, target.shape))
    options = {"chip_config_name": _TPU_CHIP[target.kind]} if target.kind in _TPU_CHIP else {}
    if target.slices > 1:
        options["num_slices"] = target.slices
    try:
        topology = topologies.get_topology_desc(
            platform="tpu", topology_name=f"{target.kind}:{shape}", **options
        )
    except Exception as error:  # whatever the library raises, it is about the topology
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"--topology: {target.name} is not one to compile for: {reason}") from None
    return list(topology.devices)
