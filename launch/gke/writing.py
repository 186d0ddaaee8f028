"""The programs that write manifests: from their command lines to the file."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml
from absl import flags

from attention_jax.commands import cli
from attention_jax.devices.ahead_of_time.targets import parse_target
from attention_jax.devices.mesh import mesh_sizes
from attention_jax.errors import UserError
from attention_jax.runs.config import ExperimentConfig, from_config_dict
from attention_jax.runs.files import write_text
from attention_jax.runs.size_of_text import USUAL, settled
from attention_jax.sweeps.sweep import open_sweep
from launch.gke.jobset import Request, jobset


def requested() -> Request:
    """Reads the flags, and checks config and mesh as training will.

    Raises:
      UserError: If something is missing or makes no sense.
    """
    # The text is where the nodes are: what they choose by its size does not matter here.
    config = from_config_dict(settled(flags.FLAGS["config"].value, cli.note, USUAL))
    return _request(config, cli.require("name"), train_arguments(sys.argv[1:]))


def requested_of_sweep() -> list[Request]:
    """Reads the flags, and checks configs and meshes of the runs of a sweep.

    Raises:
      UserError: If something is missing or makes no sense, or there is no run to be made.
    """
    sweep, name = open_sweep(cli.require("workdir"), None), cli.require("name")
    numbers = {str(number): run for number, run in enumerate(sweep.runs)}
    for number in cli.value("run"):
        if number not in numbers:
            raise UserError(
                f"--run: expected numbers from 0 to {len(numbers) - 1}, found {number!r}"
            )
    left = [number for number, run in numbers.items() if not run.is_finished()]
    chosen = {number: numbers[number] for number in cli.value("run") or left}
    if not chosen:
        raise UserError(
            f"{sweep.directory}: expected runs left to be made, found all {len(numbers)} finished"
        )
    return [
        _request(
            sweep.experiments[run.cell], f"{name}-{number}",
            train_arguments(run.arguments()[0]),
            f"{name}/{run.workdir.relative_to(sweep.directory)}",
        )
        for number, run in chosen.items()
    ]  # fmt: skip


def _request(
    config: ExperimentConfig, name: str, arguments: Sequence[str], directory: str = ""
) -> Request:
    target = parse_target(cli.require("topology"), cli.value("slices"))
    sharding = config.sharding
    # For its error, now rather than on the queued nodes, if the mesh does not fit the devices.
    mesh_sizes(target.devices, (sharding.data, sharding.fsdp, sharding.tensor))
    names = (
        "bucket", "claim", "data", "extensions", "service_account", "per_node", "max_restarts",
        "spot",
    )  # fmt: skip
    return Request(
        name=name,
        image=cli.require("image"),
        kind=target.kind,
        shape=target.shape,
        slices=target.slices,
        arguments=arguments,
        directory=directory,
        variables=_variables(cli.value("env")),
        **{name: cli.value(name) for name in names},
    )


def _variables(assignments: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not (equals and re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name)) or name in found:
            raise UserError(f"--env: expected NAME=VALUE, each name once, found {text!r}")
        found[name] = value
    return found


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


def write(requests: Sequence[Request], path: Path | None) -> None:
    """Writes manifests to a file, or prints them."""
    text = yaml.safe_dump_all([jobset(each) for each in requests], sort_keys=False, width=100)
    if path is None:
        print(text, end="")
        return
    try:
        write_text(path, text)
    except OSError as error:
        raise UserError(f"--out: {path} cannot be written ({error.strerror})") from None
    sets = f"JobSet{'s' * (len(requests) > 1)} {', '.join(each.name for each in requests)}"
    print(f"{path} holds the {sets}; kubectl apply -f {path}")
