"""The program of `launch.gke.manifest`: from its command line to the manifest file."""

import sys
from collections.abc import Sequence
from pathlib import Path

import yaml
from absl import flags

from attention_jax.commands import cli
from attention_jax.devices.ahead_of_time.targets import parse_target
from attention_jax.devices.mesh import mesh_sizes
from attention_jax.errors import UserError
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.files import write_text
from attention_jax.runs.size_of_text import USUAL, settled
from launch.gke.jobset import Request, jobset


def requested() -> Request:
    """Reads the flags, and checks config and mesh as training will.

    Raises:
      UserError: If something is missing or makes no sense.
    """
    # The text is where the nodes are: what they choose by its size does not matter here.
    config = from_config_dict(settled(flags.FLAGS["config"].value, cli.note, USUAL))
    target = parse_target(cli.require("topology"), cli.value("slices"))
    sharding = config.sharding
    # For its error, now rather than on the queued nodes, if the mesh does not fit the devices.
    mesh_sizes(target.devices, (sharding.data, sharding.fsdp, sharding.tensor))
    names = ("bucket", "claim", "data", "service_account", "per_node", "max_restarts", "spot")
    return Request(
        name=cli.require("name"),
        image=cli.require("image"),
        kind=target.kind,
        shape=target.shape,
        slices=target.slices,
        arguments=train_arguments(sys.argv[1:]),
        **{name: cli.value(name) for name in names},
    )


def train_arguments(arguments: Sequence[str]) -> list[str]:
    """Selects the arguments that launch.train takes: `--config` and overrides of its fields."""
    found, rest = [], iter(arguments)
    for argument in rest:
        name = argument.lstrip("-").split("=")[0]
        if name == "config" and "=" not in argument:
            argument = f"{argument}={next(rest)}"
        if name == "config" or name.startswith("config."):
            found.append(f"--{argument.lstrip('-')}")
    return found


def write(request: Request, path: Path | None) -> None:
    """Writes the manifest to a file, or prints it."""
    text = yaml.safe_dump(jobset(request), sort_keys=False, width=100)
    if path is None:
        print(text, end="")
        return
    try:
        write_text(path, text)
    except OSError as error:
        raise UserError(f"--out: {path} cannot be written ({error.strerror})") from None
    print(f"{path} holds the JobSet {request.name}; kubectl apply -f {path}")
