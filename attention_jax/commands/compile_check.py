r"""Compiles the training step for devices that are not at hand: does it fit, what does it send?

usage: python -m launch.compile_check --config=FILE[:ARGUMENT] --topology=KIND:SHAPE [options]

  --config         a config file, as for launch.train; --config.FIELD=VALUE likewise
  --topology       a TPU slice (v4:2x2x2, v5e:4x4, v5p:2x2x2, v6e:4x4), GPUs (t4, l4, a100-40g,
                   a100-80g, h100, h200, as in h100:16) or cpu:8
  --slices=N       so many TPU slices (1)
  --memory_gib=G   memory of a device, instead of what is known of the topology's
  --compiler       auto (default): the TPU's own for a TPU slice, which needs the package libtpu but
                   no TPU, else simulated CPU devices, with a step that is lowered for the target
                   as well; cpu or tpu: this one
  --workdir        a run whose vocabularies are used; without it they are made anew

for example:
  python -m launch.compile_check --config=configs/bahdanau2015.py:multi30k --topology=v5e:4x4 \
      --config.data.batch_size=1280
  python -m launch.compile_check --config=configs/quickstart.py --topology=h100:8 --memory_gib=40

Prints the memory of a device, what devices exchange in a step, and whether it fits, for the batch
shape with the most source times target positions. Exit codes: 0, 1 if it does not fit, 2 after a
mistake.
"""

import sys

from absl import flags

from attention_jax.commands import cli


def define_flags() -> None:
    """Flags of the command line."""
    flags.DEFINE_string("topology", None, "The devices.")
    flags.DEFINE_integer("slices", 1, "How many of them.", lower_bound=1)
    flags.DEFINE_float("memory_gib", None, "Memory of a device.", lower_bound=0.001)
    flags.DEFINE_enum("compiler", "auto", ["auto", "tpu", "cpu"], "Whose compiler.")
    flags.DEFINE_string("workdir", None, "A run.")


def main() -> int:
    """Compiles, prints, and says whether it fits."""
    topology = cli.require("topology")
    from attention_jax.devices.ahead_of_time import targets
    from attention_jax.runs.config import from_config_dict
    from attention_jax.runs.size_of_text import settled
    from attention_jax.training import footprint, footprint_report

    config = from_config_dict(settled(flags.FLAGS["config"].value, cli.note))
    target = targets.parse_target(topology, cli.value("slices"), cli.value("memory_gib"))
    devices, compiler = targets.devices_of(target, cli.value("compiler"))
    try:
        with footprint.vocabularies(cli.value("workdir")) as directory:
            found = footprint.measure(config, directory, devices, target.platform)
        print(*footprint_report.lines(found, target, compiler), sep="\n")
        footprint.require_fit(found, target)
        print("", footprint_report.fits_line(found, target), sep="\n")
    except footprint.DoesNotFit as error:
        print(f"error: {target.name}: {error}", file=sys.stderr)
        return 1


def run() -> None:
    """Runs the program."""
    define_flags()
    cli.run(main, __doc__, cli.prepare_experiment)
