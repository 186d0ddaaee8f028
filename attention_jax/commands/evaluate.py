"""Evaluates a trained run: perplexity, outputs, scores, alignments, pictures.

usage: python -m launch.evaluate --workdir=DIRECTORY [--split=SPLIT] [--OPTION=VALUE ...]

  --workdir        the directory of a run that launch.train made; of several, with commas between,
                   --ensemble=log_linear or mean predicts with all
  --split          train, validation, test or another; several with commas (default: the config's)
  --source --target  any text and its references, a line each, in place of a split; --source=fr=F
                   is the further source fr. Results are called as the file is, or --name=NAME
  --search.FIELD   another way to search, such as --search.beam_size=10 --search.method=greedy
  --data.FIELD     where a text of the run is now, such as --data.train_source=/new/train.en
  --against        other runs, with commas between (DIRECTORY@STEP for a checkpoint), each searched
                   as its config says: in the viewer, and by paired bootstrap: the difference, its
                   95 % interval, and p: how probable one so large is if both are equally good
  --dropped_words  aligns sources with outputs for words left untranslated; half a minute
  --heads          measures every head (from 0): what it attends to, AER, what is lost without it
  --alignment      a file of gold links for one split: attention while its references are written
                   is compared with them (AER, match and probability mass); as for `launch.align
                   score --gold`, counted from 0 unless --alignment_base=1. Only with it:
  --alignment_source --alignment_target: files of the words that the links count, if others
  --alignment_threshold: also scores the links with at least this weight, such as 0.2
  --alignment_shift: links from the step after (1) or before (-1) a word's; default: as taught
  --attribution: input_gradient, integrated_gradients, occlusion, value_norms: AER of these, too
  --reverse        a run of the opposite direction to symmetrise with, unless one model has both
for example: python -m launch.evaluate --workdir=runs/mine --split=test --against=runs/other

Writes results.json, predictions.SPLIT.txt and .tsv, alignments.SPLIT.txt, viewer.SPLIT.html,
comparison.SPLIT.json, heads.SPLIT.tsv, attributions.SPLIT.npz and plots/, in place of what they
held for these splits: in DIRECTORY, or for another search or text in a folder of evaluations/.
"""

from attention_jax.commands import cli, trained_runs
from attention_jax.commands.evaluation_options import GIVEN, GOLD, define_flags


def main() -> None:
    """Evaluates the splits that were asked for."""
    from attention_jax.analysis import evaluation_request as requests

    asked = {name: cli.value(name) for name in requests.FLAGS}
    asked["against"] = cli.directories(asked["against"], "against") if asked["against"] else ()
    run = trained_runs.loaded(moved=cli.moved_texts())
    if any(map(cli.value, GIVEN)):
        others = requests.further_sources(against=asked["against"], reverse=asked["reverse"])
        asked["texts"] = requests.GivenTexts.read(run, *map(cli.value, GIVEN), others)
    request = requests.EvaluationRequest(**asked, gold=requests.GoldFiles(*map(cli.value, GOLD)))
    print(*requests.evaluate_as_asked(run, request.data_of(run), request, cli.note), sep="\n")


def run() -> None:
    """Runs the program."""
    define_flags()
    cli.run(main, __doc__, cli.prepare_evaluation)
