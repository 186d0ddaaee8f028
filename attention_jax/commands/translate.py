"""Translates lines of text with a trained run: one line in, one line out.

usage: python -m launch.translate --workdir=DIRECTORY [options] < INPUT > OUTPUT

  --workdir        the directory of a run; of several, with commas between, --ensemble=log_linear
                   averages the log-probabilities, mean the probabilities
  --source=fr=FILE the lines of the further source fr, of a model that reads several
  --prefix=FILE    what outputs begin with, a line for each, or an empty one (docs/own_text.md)
  --nbest=N        the N best of each line, from 0: `LINE ||| OUTPUT ||| LOG_PROBABILITY SCORE`
  --alignments     adds ` ||| 0-0 1-2 ...`: source-target positions, from 0, of words between
                   spaces, or of characters where Chinese, Thai or the like was trained without
  --explain        adds ` ||| g:0.98 c2:0.91 ...`: each token generated, or copied from position 2
  --weights=FILE   writes all attention, by layer and head, to FILE.npz (NumPy) or FILE.jsonl
  --plot=FILE      draws the attention of the first lines (PNG, SVG, PDF) in an existing directory
  --online         writes while a line is being read (docs/own_text.md), and adds ` ||| 1 2 2 ...`:
                   how many of its tokens had been read when each token of the output was written
  --direction=reverse  from target to source, with a model of both directions
  --search.FIELD   another way to search, such as --search.coverage_penalty=gnmt; with words or
                   characters also --search.replace_unknown --search.unknown_dictionary=FILE
for example: echo attention | python -m launch.translate --workdir=runs/quickstart --plot=map.png

An empty line gives an empty line; a language model goes on from every line. All is UTF-8; a byte
order mark and Windows line ends are tolerated, anything else is refused before it is translated.
"""

from absl import flags

from attention_jax.commands import cli, streams, trained_runs


def define_flags() -> None:
    """Flags of the command line."""
    trained_runs.define_flags("plot", "weights", "prefix")
    flags.DEFINE_multi_string("source", [], "See above.")
    for name in ("alignments", "explain", "online"):
        flags.DEFINE_boolean(name, False, "See above.")
    flags.DEFINE_integer("nbest", 0, "Number of outputs of each line.", 0, 10_000)


def main() -> None:
    """Translates the standard input."""
    plot = cli.output_path("plot", ".png", ".svg", ".pdf")
    weights = cli.output_path("weights", ".npz", ".jsonl")
    from attention_jax.analysis.matrices import write_matrices
    from attention_jax.data.lines import read_standard_input
    from attention_jax.decoding.online import translate_standard_input
    from attention_jax.decoding.translate import Translator, check_aligning

    run = trained_runs.loaded()
    check_aligning(run, *filter(cli.value, ("alignments", "plot", "weights")))
    if cli.value("online"):
        flags_of_lines = "nbest", "alignments", "explain", "plot", "weights", "prefix"
        return streams.write(translate_standard_input(run, *filter(cli.value, flags_of_lines)))
    translator = Translator(run, nbest=cli.value("nbest"))
    texts = read_standard_input(), cli.named_texts("source")  # all, before the first output
    translations = translator.translate(*texts, cli.lines_of("prefix"), counted=True)
    # Files first: the reader of the outputs may close the pipe, as `head` does.
    if plot:
        from attention_jax.analysis.pictures import draw_translations
        cli.note(draw_translations(run, translations, plot, texts[1]))
    if weights:
        write_matrices(weights, run, translator.shown(translations), *texts)
    shown = {name: cli.value(name) for name in ("alignments", "explain")}
    streams.write(f"{line}\n" for line in translator.format(translations, **shown))


def run() -> None:
    """Runs the program."""
    define_flags()
    cli.run(main, __doc__, cli.prepare_search)
