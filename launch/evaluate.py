"""Evaluates a trained run: perplexity, outputs, scores, alignments, pictures.

usage: python -m launch.evaluate --workdir=DIRECTORY [--split=SPLIT] [--search.FIELD=VALUE]

  --workdir        the directory of a run that launch.train made
  --split          train, validation or test; several with commas (default: as in the config)
  --search.FIELD   another way to search, such as --search.beam_size=10 --search.method=greedy

for example:
  python -m launch.evaluate --workdir=runs/quickstart --split=test
  python -m launch.evaluate --workdir=runs/quickstart --search.beam_size=1

Writes results.json, predictions.SPLIT.txt, alignments.SPLIT.txt and plots/ of the run, in place of
what they held for these splits.
"""

from absl import flags

from launch import cli

flags.DEFINE_string("workdir", None, "The run's directory.")
flags.DEFINE_list("split", None, "The splits.")


def main() -> None:
    """Evaluates the splits that were asked for."""
    from attention_jax.data.tasks import build_task
    from attention_jax.training.evaluate import Evaluation, format_results
    from attention_jax.training.trained import load_run

    cli.use_compilation_cache()
    run = load_run(cli.require("workdir"), cli.overridden("search"))
    task = build_task(run.config.data, run.directory.vocabularies)
    evaluation = Evaluation(run, task)
    splits = flags.FLAGS["split"].value or run.config.evaluation.splits
    for name in splits:
        task.split(name)
    for name in splits:
        evaluation.evaluate(name)
    print(format_results(run.directory))


if __name__ == "__main__":
    cli.run(main, __doc__, cli.prepare_search)
