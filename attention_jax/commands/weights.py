r"""Writes the parameters of a trained run as a safetensors file, for other programs to read.

usage: python -m launch.weights --workdir=DIRECTORY --output=FILE [--step=STEP]

  --workdir   the directory of a run that launch.train made
  --output    the file; its directory must exist
  --step      a checkpoint, in place of what is evaluated

for example:
  python -m launch.weights --workdir=runs/vaswani2017 --output=transformer.safetensors
  python -m launch.train --config=configs/vaswani2017.py:multi30k --workdir=runs/more \
      --config.training.initial_weights=transformer.safetensors \
      --config.data.vocabularies=runs/vaswani2017/vocab

Tensors are named by their places in the model, such as encoder.layer_0.feed_forward.hidden; see
docs/weights.md. The file's metadata holds the config of the run and a hash of its vocabularies: a
training that starts from it needs the same ones. Mistakes are answered with one line and code 2.
"""

from absl import flags

from attention_jax.commands import cli


def define_flags() -> None:
    """Flags of the command line."""
    flags.DEFINE_string("workdir", None, "The run's directory.")
    flags.DEFINE_string("output", None, "The file.")
    flags.DEFINE_integer("step", None, "A checkpoint.", lower_bound=0)


def main() -> None:
    """Writes the file."""
    workdir, output = cli.require("workdir"), cli.require("output")
    cli.output_path("output")
    from attention_jax.runs.checkpoints.weights import save_weights
    from attention_jax.runs.config import to_plain
    from attention_jax.runs.hashes import hash_files
    from attention_jax.runs.load import load_run
    from attention_jax.updates.averaging import describe_evaluated

    step = cli.value("step")
    run = load_run(workdir, step=step)
    vocabularies = hash_files(run.directory.vocabularies)
    save_weights(run.params, output, to_plain(run.config), vocabularies)
    averaging = run.config.training.averaging
    what = describe_evaluated(averaging, run.step, is_one_checkpoint=step is not None)
    print(f"{what} of {workdir} is in {output}")


def run() -> None:
    """Runs the program."""
    define_flags()
    cli.run(main, __doc__)
