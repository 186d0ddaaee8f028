"""Evaluates a trained run: perplexity, outputs, scores, alignments, pictures.

usage: python -m launch.evaluate --workdir=DIRECTORY [--split=SPLIT] [--search.FIELD=VALUE]

  --workdir        the directory of a run that launch.train made
  --split          train, validation or test; several with commas (default: as in the config)
  --alignment      a file of gold links for one split: attention while its references are written
                   is compared with them (AER, match and probability mass); links as for
                   `launch.align score --gold`, from --alignment_base=0 or 1
  --alignment_source --alignment_target
                   files of the words that the links count, if not the split's own
  --search.FIELD   another way to search, such as --search.beam_size=10 --search.method=greedy
                   --search.coverage_penalty=gnmt --search.replace_unknown

for example:
  python -m launch.evaluate --workdir=runs/quickstart --split=test
  python -m launch.evaluate --workdir=runs/quickstart --search.beam_size=1

Writes results.json, predictions.SPLIT.txt, alignments.SPLIT.txt and plots/ of the run, in place of
what they held for these splits.
"""

from absl import flags

from launch import cli

for name in ("workdir", "alignment", "alignment_source", "alignment_target"):
    flags.DEFINE_string(name, None, "See above.")
flags.DEFINE_list("split", None, "The splits.")
flags.DEFINE_enum("alignment_base", "0", ["0", "1"], "Number of a first word.")


def main() -> None:
    """Evaluates the splits that were asked for."""
    from attention_jax.data.tasks import build_task
    from attention_jax.training.evaluate import Evaluation, format_results
    from attention_jax.training.forced_decoding import GoldFiles, evaluate_alignment
    from attention_jax.training.trained import load_run

    cli.use_compilation_cache()
    run = load_run(cli.require("workdir"), cli.overridden("search"))
    task = build_task(run.config.data, run.directory.vocabularies)
    splits = cli.value("split") or run.config.evaluation.splits
    gold = GoldFiles(*map(cli.value, ("alignment", "alignment_base",
                                      "alignment_source", "alignment_target")))  # fmt: skip
    links = gold.read([task.split(name) for name in splits])
    evaluation = Evaluation(run, task)
    for name in splits:
        evaluation.evaluate(name)
    if links:
        evaluate_alignment(run, task.split(splits[0]), links)
    print(format_results(run.directory))


if __name__ == "__main__":
    cli.run(main, __doc__, cli.prepare_search)
