r"""Imports a model that another program has trained: its folder becomes a run, without PyTorch.

usage: python -m launch.import_weights --from=FOLDER --workdir=DIRECTORY

  --from      a folder as Hugging Face's transformers saves models: config.json, model.safetensors,
              and the tokenizer's files, of Marian (OPUS-MT), T5 or BART
  --workdir   the directory of the run that is made

for example:
  python -m launch.import_weights --from=opus-mt-en-de --workdir=runs/opus
  echo "Attention is all you need." | python -m launch.translate --workdir=runs/opus

launch.translate, launch.score, launch.evaluate with --source and --target, and launch.weights then
take the run as any other. To train it further on a text of your own, see docs/weights.md. Mistakes
are answered with one line and code 2, and nothing is written.
"""

from absl import flags

from attention_jax.commands import cli


def define_flags() -> None:
    """Flags of the command line."""
    flags.DEFINE_string("from", None, "The folder.")
    flags.DEFINE_string("workdir", None, "The run's directory.")


def main() -> None:
    """Writes the run."""
    folder, workdir = cli.require("from"), cli.require("workdir")
    from attention_jax.runs.foreign.importing import import_model

    directory = import_model(folder, workdir)
    print(f"The model of {folder} is in {directory.path}")


def run() -> None:
    """Runs the program."""
    define_flags()
    cli.run(main, __doc__)
