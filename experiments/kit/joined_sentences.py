"""Evaluates a trained run on longer inputs: test sentences joined by twos, threes and fours."""

import dataclasses

import numpy as np
from absl import flags

from attention_jax.analysis.evaluate import Evaluation
from attention_jax.commands import cli
from attention_jax.data.examples import Split
from attention_jax.runs.load import TrainedRun, load_run, task_of
from attention_jax.training.loop import count_parameters
from experiments.kit import sentence_bleu
from experiments.kit.sentence_bleu import SentenceBleu

USAGE = """
Evaluates a trained run on longer inputs: test sentences joined by twos, threes and fours.

usage: python -m experiments.kit.joined_sentences --workdir=DIRECTORY

A test sentence is in one joined sentence of each kind at most, together with others drawn at
random, the same ones for every run; the last ones, fewer than a joined sentence takes, are left
out. Adds the splits joined_2, joined_3 and joined_4 to the run's results.json, and writes
sentence_bleu.npz: what BLEU needs of each sentence of all splits.
"""
NUMBERS = (2, 3, 4)
# A caveat for pages that give intervals over all joined sentences together.
CAVEAT = (
    "The same sentences recur, joined by twos, by threes and by fours. The intervals take joined "
    "sentences for independent ones, ignore this, and are too narrow."
)


def main() -> None:
    """Evaluates the run."""
    cli.use_compilation_cache()
    run = load_run(cli.require("workdir"))
    evaluate(run)


def evaluate(run: TrainedRun) -> None:
    """Evaluates the joined splits of a run whose test split has been evaluated."""
    task = task_of(run)
    test = task.split("test")
    splits = {split.name: split for split in (joined(test, number) for number in NUMBERS)}
    evaluation = Evaluation(run, dataclasses.replace(task, splits={**task.splits, **splits}))
    for name in splits:
        evaluation.evaluate(name)
    sentence_bleu.save(
        run.directory.path / sentence_bleu.FILE,
        {name: _counted(run, split) for name, split in {"test": test, **splits}.items()},
    )
    run.directory.add_to_run(
        num_parameters=count_parameters(run.params), num_train_pairs=len(task.split("train"))
    )


def joined(split: Split, number: int) -> Split:
    """Joins the examples in random groups of `number`; the remainder is dropped.

    The reference of a joined source is made of the first reference of each part.
    """
    # A fixed seed: every run is tested on the same joined sentences.
    order = np.random.default_rng(0).permutation(len(split))
    groups = order[: len(order) // number * number].reshape(-1, number)
    sources, targets = (
        [" ".join(texts[index] for index in group) for group in groups]
        for texts in (split.sources, split.targets)
    )
    return dataclasses.replace(
        split,
        name=f"joined_{number}",
        sources=sources,
        targets=targets,
        references=[[target] for target in targets],
    )


def _counted(run: TrainedRun, split: Split) -> SentenceBleu:
    lines = run.directory.predictions(split.name).read_text(encoding="utf-8").split("\n")
    return SentenceBleu.of(split.sources, lines[: len(split)], split.references)


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, which are not those of programs that import this module."""
    flags.DEFINE_string("workdir", None, "The run's directory.")
    return argv


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
