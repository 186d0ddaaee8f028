"""Alignment error rate of aligners, of those that supervise attention too, on the test pairs."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from attention_jax.commands import cli
from attention_jax.data.alignment.aligners import align
from attention_jax.data.examples import Split
from attention_jax.data.loading import build_task
from attention_jax.data.text.words import words_of_text
from attention_jax.errors import UserError
from attention_jax.evaluation.aer import count_links
from attention_jax.evaluation.pharaoh import MarkedLinks
from attention_jax.evaluation.symmetrization import symmetrize
from attention_jax.paths import expanded
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.files import write_json
from attention_jax.runs.run_directory import read_json, writing
from attention_jax.sweeps.grid import GridRun
from experiments import coverage_vs_supervised as experiment
from experiments.kit import attention_record, program

USAGE = """
Measures aligners on the test pairs that have gold links: those that supervise attention, and
agreement and spelling beside them.

usage: python -m experiments.aligner_error_rates [--full] [--out=docs/results]

Writes coverage_vs_supervised/teachers.json below --out, which the experiment's page shows; with
--full that of the full size. What stands there is kept: eflomal samples, and a new measurement
would differ. Needs ATTENTION_JAX_DATA with multi30k/alignments; seconds for hmm
and 4,000 pairs, minutes for all.
"""
OTHERS = ("agreement", "spelling")  # measured on the same pairs, though they supervise nothing
Words = Sequence[Sequence[str]]


def main() -> None:
    """Measures every aligner in every condition."""
    grid = program.chosen_grid(
        experiment.make_grid, experiment.make_full_grid, full=cli.value("full")
    )
    out = expanded(cli.value("out") or "docs/results")
    path = out / grid.name / experiment.TEACHERS
    # One cell for each teacher: those that differ in the loss alone have the same links.
    runs = [
        run
        for run in grid.runs(Path("runs"), out)
        if run.seed == grid.seeds[0] and "_ce_" in run.cell
    ]
    if not runs:
        raise UserError(f"{grid.name}: expected cells with a teacher, found none")
    found = read_json(path, {str: {str: float}}) or {}
    for run in runs:
        condition, _, teacher = run.cell.partition("_ce_")
        for method in (teacher, *OTHERS):
            name = f"{condition}_{method}"
            if name not in found:
                found[name] = _measured(run, method)
                print(name, found[name], flush=True)
    with writing(path):
        write_json(path, found)


def teacher_scores(
    method: str,
    train: tuple[Words, Words],
    test: tuple[Words, Words],
    golds: Mapping[int, MarkedLinks],
) -> dict[str, float]:
    """Aligns training and test pairs together, and computes the AER of the test pairs' links.

    Statistical aligners learn from the pairs that they align, so the test pairs are appended.

    Args:
      method: Name of an aligner.
      train: Sources and targets of the training pairs, as words.
      test: Sources and targets of the test pairs.
      golds: Gold links of some test pairs, by their number.

    Returns:
      AER in percent: `forward`, where a target word has at most one link, as attention has if only
      the most attended word counts; `reverse`; `symmetrized`, by grow-diag-final-and, which is
      what supervises attention.
    """
    sides = [[*first, *second] for first, second in zip(train, test, strict=True)]
    forward, reverse = (links[len(train[0]) :] for links in align(*sides, method))
    joined = [
        symmetrize(*pair, experiment.SYMMETRIZATION)
        for pair in zip(forward, reverse, strict=True)
    ]
    alignments = {"forward": forward, "reverse": reverse, "symmetrized": joined}
    numbers = sorted(golds)
    return {
        name: count_links([links[n] for n in numbers], [golds[n] for n in numbers]).aer
        for name, links in alignments.items()
    }


def _measured(run: GridRun, method: str) -> dict[str, float]:
    config = from_config_dict(run.resolved())
    with tempfile.TemporaryDirectory() as vocabularies:
        task = build_task(config.data, Path(vocabularies))
    train, test = task.split("train"), task.split("test")
    gold = attention_record.gold_links(test, config.data)
    if gold is None:
        raise UserError("ATTENTION_JAX_DATA: expected a folder with multi30k/alignments, has none")
    words = (gold.source_words, gold.target_words)
    return teacher_scores(method, _words(train), words, gold.links)


def _words(split: Split) -> tuple[Words, Words]:
    sources, targets = (
        [words_of_text(text) for text in side] for side in (split.sources, split.targets)
    )
    return sources, targets


if __name__ == "__main__":
    cli.run(main, USAGE, program.define_grid_flags)
