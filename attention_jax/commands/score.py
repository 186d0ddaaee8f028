r"""Scores given outputs with a trained run: log-probabilities, by token too; ranks n-best lists.

usage: python -m launch.score --workdir=DIRECTORY --source=FILE --target=FILE [options]
       python -m launch.score --workdir=DIRECTORY --source=FILE --nbest=FILE [options]

  --workdir        the directory of a run that launch.train made; of several, with commas between,
                   --ensemble=log_linear (mean of log-probabilities) or mean (of probabilities)
  --source         the source texts, one a line; for a language model, which reads none, left out
  --source=fr=FILE the lines of the further source fr, beside it, of a model that reads several
  --target         the outputs to be scored, one for each source
  --nbest          n-best lists of the sources, `LINE ||| OUTPUT ||| ...` with lines counted from 0,
                   as launch.translate --nbest writes them: ranked anew, the best of a line first
  --tokens         adds ` ||| -0.1 -2.3 ...`: the log-probability of each token, EOS last
  --alignments     adds ` ||| 0-0 1-2 ...`: as in launch.translate, of the given outputs
  --direction=reverse
                   from the target's language to the source's, with a model of both directions
  --search.FIELD   another length normalisation of the score, such as --search.length_alpha=0.6

for example:
  python -m launch.score --workdir=runs/mine --source=test.en --target=test.de
  python -m launch.translate --workdir=runs/one --nbest=10 --search.beam_size=10 < test.en \
      | python -m launch.score --workdir=runs/other --source=test.en --nbest=/dev/stdin

Prints `LOG_PROBABILITY SCORE TOKENS` for each line: the natural logarithm of the probability of the
whole output, the same divided by the length penalty of the search, and the number of its tokens,
EOS included. Of n-best lists, `LINE ||| OUTPUT ||| LOG_PROBABILITY SCORE`, as launch.translate.
"""

from absl import flags

from attention_jax.commands import cli, streams, trained_runs


def define_flags() -> None:
    """Flags of the command line."""
    trained_runs.define_flags("target", "nbest")
    flags.DEFINE_multi_string("source", [], "See above.")
    for name in ("tokens", "alignments"):
        flags.DEFINE_boolean(name, False, "See above.")


def main() -> None:
    """Scores pairs of lines, or ranks n-best lists."""
    from attention_jax.decoding.rescoring import ranked_lists, scored_lines
    from attention_jax.decoding.translate import check_aligning

    run = trained_runs.loaded()
    check_aligning(run, *filter(cli.value, ("alignments",)))
    given = cli.either("target", "nbest")
    lines = ranked_lists if given == "nbest" else scored_lines
    source, others = None, {}
    if not run.task.continues:
        source, others = trained_runs.sources(run.further_sources)
    shown = {name: cli.value(name) for name in ("tokens", "alignments")}
    streams.write(f"{line}\n" for line in lines(run, source, cli.value(given), others, **shown))


def run() -> None:
    """Runs the program."""
    define_flags()
    cli.run(main, __doc__, cli.prepare_search)
