r"""Writes the parameters of a trained run as a safetensors file, or leaves a run nothing else.

usage: python -m launch.weights --workdir=DIRECTORY (--output=FILE [--step=STEP] | --prune)

  --workdir   the directory of a run that launch.train made
  --output    the file, for other programs; its directory must exist
  --step      a checkpoint, in place of what is evaluated
  --prune     replaces the checkpoints of a finished run by weights.safetensors in its directory: it
              is translated with, scored and evaluated as before, but cannot be continued

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
from attention_jax.errors import UserError


def define_flags() -> None:
    """Flags of the command line."""
    flags.DEFINE_string("workdir", None, "The run's directory.")
    flags.DEFINE_string("output", None, "The file.")
    flags.DEFINE_integer("step", None, "A checkpoint.", lower_bound=0)
    flags.DEFINE_bool("prune", False, "Whether checkpoints are given up.")


def main() -> None:
    """Writes the file, or prunes the run."""
    workdir, output, step = cli.require("workdir"), cli.value("output"), cli.value("step")
    if cli.value("prune") and not (output is None and step is None):
        raise UserError("--prune: expected neither --output nor --step beside it")
    if not cli.value("prune"):
        if output is None:
            raise UserError("--output, --prune: expected one of them, found neither")
        cli.output_path("output")
    from attention_jax.data.lexicon import LEXICON_FILE
    from attention_jax.runs.checkpoints.weights import save_weights
    from attention_jax.runs.config import to_plain
    from attention_jax.runs.hashes import hash_files
    from attention_jax.runs.load import load_run
    from attention_jax.runs.pruning import Kept, prune
    from attention_jax.updates.averaging import describe_evaluated

    run = load_run(workdir, step=step)
    if output is None:
        freed = prune(run.directory, Kept(run.params, run.step, run.texts))
        print(f"{run.directory.weights} holds step {run.step}; freed {freed / 1e6:,.1f} MB")
        return
    vocabularies = hash_files(run.directory.vocabularies, LEXICON_FILE)
    save_weights(run.params, output, to_plain(run.config), vocabularies)
    averaging = run.config.training.averaging
    what = describe_evaluated(averaging, run.step, is_one_checkpoint=step is not None)
    print(f"{what} of {workdir} is in {output}")


def run() -> None:
    """Runs the program."""
    define_flags()
    cli.run(main, __doc__)
