"""Translates lines of text with a trained run: one line in, one line out.

usage: python -m launch.translate --workdir=DIRECTORY [options] < INPUT > OUTPUT

  --workdir        the directory of a run that launch.train made
  --nbest=N        the N best outputs of each line: `LINE ||| OUTPUT ||| LOG_PROBABILITY SCORE`,
                   lines counted from 0
  --alignments     adds ` ||| 0-0 1-2 ...`, source-target positions of words, counted from 0; they
                   are between spaces, and where Chinese, Japanese, Thai or the like was trained
                   without spaces its characters
  --plot=FILE      draws the attention of the first lines as PNG or SVG, in an existing directory
  --direction=reverse
                   from the target's language to the source's, with a model of both directions
  --search.FIELD   another way to search, such as --search.coverage_penalty=gnmt; but for subwords
                   (kind=bpe) also --search.replace_unknown --search.unknown_dictionary=FILE

for example:
  echo attention | python -m launch.translate --workdir=runs/quickstart --plot=attention.png
  python -m launch.translate --workdir=runs/mine --nbest=5 < test.en > test.nbest

An empty line gives an empty line; a language model goes on from every line. All is UTF-8; a byte
order mark and Windows line ends are tolerated, anything else is refused before a line is written.
"""

from absl import flags

from attention_jax.commands import cli


def define_flags() -> None:
    """Flags of the command line."""
    flags.DEFINE_string("workdir", None, "The run's directory.")
    flags.DEFINE_integer("nbest", 0, "Number of outputs of each line.", 0, 10_000)
    flags.DEFINE_boolean("alignments", False, "Whether to add alignments.")
    flags.DEFINE_string("plot", None, "Where to draw the attention.")
    flags.DEFINE_enum("direction", "forward", ["forward", "reverse"], "From which side to which.")


def main() -> None:
    """Translates the standard input."""
    workdir = cli.require("workdir")
    nbest, plot = cli.value("nbest"), cli.output_path("plot", ".png", ".svg")
    from attention_jax.analysis.reverse import reverse_run
    from attention_jax.data.lines import read_standard_input
    from attention_jax.decoding.translate import Translator, check_aligning
    from attention_jax.runs.load import load_run

    cli.use_compilation_cache()
    run = load_run(workdir, cli.overridden("search"))
    check_aligning(run, *filter(cli.value, ("alignments", "plot")))
    if flags.FLAGS["direction"].value == "reverse":
        run = reverse_run(run)
    translator = Translator(run, nbest=nbest)
    lines = read_standard_input()
    translations = translator.translate(lines)  # all of them, so that bad input prints nothing
    for line in translator.format(translations, alignments=flags.FLAGS["alignments"].value):
        print(line)
    if plot:
        from attention_jax.analysis.pictures import draw_translations

        cli.note(draw_translations(run, translations, plot))


def run() -> None:
    """Runs the program."""
    define_flags()
    cli.run(main, __doc__, cli.prepare_search)
