"""Meshes as they are written on a command line: `data=8,fsdp=4,tensor=2`."""

import dataclasses
import difflib
import math
import re
from collections.abc import Mapping

from attention_jax.devices.config import AXES
from attention_jax.errors import UserError
from attention_jax.runs.config import ExperimentConfig


def parse_mesh(text: str, devices: int) -> dict[str, int]:
    """Reads a mesh; without `data`, that axis takes the rest of the devices.

    Args:
      text: Sizes of axes, with commas between.
      devices: How many devices there are.

    Raises:
      UserError: If an axis is unknown or named twice, or the sizes do not multiply to `devices`.
    """
    sizes: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"\s*(\w+)=([1-9]\d*)\s*", part)
        if match is None:
            raise UserError(f"--mesh: expected sizes as in data=8,fsdp=4,tensor=2, found {part!r}")
        name, size = match[1], int(match[2])
        if name not in AXES:
            near = difflib.get_close_matches(name, AXES, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UserError(f"--mesh: expected axes of {', '.join(AXES)}, found {name!r}{hint}")
        if name in sizes:
            raise UserError(f"--mesh: expected every axis once, found {name} twice")
        sizes[name] = size
    split = math.prod(sizes.values())
    # Data parallelism takes what is left, as -1 does in a config.
    if "data" not in sizes and devices % split == 0:
        sizes["data"] = devices // split
    if math.prod(sizes.values()) != devices:
        raise UserError(f"--mesh: expected sizes that multiply to {devices}, found {text}")
    return {name: sizes.get(name, 1) for name in AXES}


def with_mesh(config: ExperimentConfig, sizes: Mapping[str, int]) -> ExperimentConfig:
    """Returns the config for a mesh.

    Raises:
      UserError: If the config's strategy has no such axes.
    """
    try:
        sharding = dataclasses.replace(config.sharding, **sizes)
    except ValueError as error:
        raise UserError(f"config.sharding.{error}") from None
    return dataclasses.replace(config, sharding=sharding)


def with_batch_per_device(
    config: ExperimentConfig, sizes: Mapping[str, int], size: int
) -> ExperimentConfig:
    """Returns the config with a batch that grows with the devices that share it.

    Args:
      config: The experiment.
      sizes: Of the mesh; devices along `tensor` work on the same examples.
      size: Of each share, in the unit of `config.data.batch_size`.
    """
    shares = math.prod(number for name, number in sizes.items() if name != "tensor")
    data = dataclasses.replace(config.data, batch_size=size * shares)
    return dataclasses.replace(config, data=data)
