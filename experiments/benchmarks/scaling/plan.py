r"""Plans memory and communication of a training on hundreds of devices that are not at hand."""

import shlex
import sys
from pathlib import Path

from absl import flags

from attention_jax.commands import cli
from attention_jax.errors import UserError

USAGE = r"""
Plans a training on devices that are not at hand: memory of each, and what they exchange.

usage: python -m experiments.benchmarks.scaling.plan --config=FILE[:ARGUMENT]
         --devices=N[,N...] [options]

  --config         a file of configs/, as for launch.train; --config.FIELD=VALUE likewise
  --devices=N,N    numbers of devices
  --mesh=SIZES     a mesh such as data=8,fsdp=4,tensor=2; without data, that axis takes the rest.
                   Several times for several; without it data alone, and fsdp alone
  --per_device=B   config.data.batch_size becomes B times the devices that share a batch, so that
                   the work of each stays the same
  --workdir=RUN    a run whose vocabularies are used; without it they are made anew
  --out=FILE       also writes the tables as Markdown

for example:
  python -m experiments.benchmarks.scaling.plan --config=configs/bahdanau2015.py:multi30k \
      --devices=8,256 --per_device=64 --mesh=data=8 --mesh=fsdp=8 --out=plan.md

Shapes and placements come from jax.eval_shape; activations and what is exchanged from the training
step compiled for exactly so many simulated CPU devices, which takes hundreds no longer than eight.
Bytes sent are per device, step and link of a ring of n: 2 (n-1)/n b for an all-reduce of b bytes,
(n-1)/n b for an all-gather or reduce-scatter of b bytes in all. By formula: gradients all-reduced
over the axes that a parameter is not split along; those that it is split along gather it twice and
reduce-scatter its gradient; batches are split over all axes but tensor.
"""
_DEVICES = flags.DEFINE_list("devices", None, "Numbers of devices.")
_MESHES = flags.DEFINE_multi_string("mesh", [], "Meshes.")
_PER_DEVICE = flags.DEFINE_integer("per_device", None, "Batch of a device.", lower_bound=1)
_WORKDIR = flags.DEFINE_string("workdir", None, "A run.")
flags.DEFINE_string("out", None, "Where tables are written.")


def main() -> None:
    """Compiles for every mesh, and prints and writes the tables."""
    numbers, out = _numbers(), cli.output_path("out")
    from attention_jax.devices.ahead_of_time import targets
    from attention_jax.runs.config import from_config_dict
    from attention_jax.runs.size_of_text import settled
    from attention_jax.training import footprint
    from experiments.benchmarks.scaling import meshes, plan_tables

    chosen = [
        (number, meshes.parse_mesh(text, number))
        for number in numbers
        for text in _MESHES.value or dict.fromkeys([f"data={number}", f"fsdp={number}"])
    ]
    config = from_config_dict(settled(flags.FLAGS["config"].value, cli.note))
    devices = targets.simulated_devices(max(numbers))
    found = []
    with footprint.vocabularies(_WORKDIR.value) as directory:
        for number, sizes in chosen:
            each = meshes.with_mesh(config, sizes)
            if _PER_DEVICE.value:
                each = meshes.with_batch_per_device(each, sizes, _PER_DEVICE.value)
            found.append(footprint.measure(each, directory, devices[:number]))
    print(plan_tables.tables(found))
    if out:
        command = shlex.join(["python", "-m", "experiments.benchmarks.scaling.plan", *sys.argv[1:]])
        _write(out, plan_tables.page(found, command))


def _numbers() -> list[int]:
    if not _DEVICES.value:
        raise UserError("--devices: expected numbers such as 8,256, found none")
    for text in _DEVICES.value:
        if not text.isdigit() or not 1 <= int(text) <= 4096:
            raise UserError(f"--devices: expected whole numbers from 1 to 4096, found {text!r}")
    return [int(text) for text in _DEVICES.value]


def _write(path: Path, text: str) -> None:
    from attention_jax.runs.files import write_text

    try:
        write_text(path, text)
    except OSError as error:
        raise UserError(f"--out: {path} cannot be written ({error.strerror})") from None


if __name__ == "__main__":
    cli.run(main, USAGE, cli.prepare_experiment)
