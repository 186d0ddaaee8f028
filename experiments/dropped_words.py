"""Counts the source words that the compared systems leave untranslated, by a word aligner."""

import tempfile
from pathlib import Path

from attention_jax.analysis.dropped_words import dropped_word_counts
from attention_jax.commands import cli
from attention_jax.data.examples import Texts
from attention_jax.data.loading import build_task
from attention_jax.errors import UserError
from attention_jax.paths import expanded
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.run_directory import writing
from attention_jax.sweeps.grid import GridRun
from experiments import coverage_vs_supervised as experiment
from experiments.kit import disagreement, program
from experiments.kit import dropped_word_counts as untranslated_counts

USAGE = """
Measures the content words of the test sources that no word of an output is linked to. One aligner
(the HMM) is trained on all training pairs, the outputs of all finished runs and the references.

usage: python -m experiments.dropped_words [--full] [--out=docs/results]

Writes coverage_vs_supervised/untranslated.npz below --out: the counts of each sentence, which the
experiment's page shows; with --full those of the full size.
"""


def main() -> None:
    """Measures every finished run."""
    grid = program.chosen_grid(
        experiment.make_grid, experiment.make_full_grid, full=cli.value("full")
    )
    out = expanded(cli.value("out") or "docs/results")
    runs = grid.runs(Path("runs"), out)
    finished = [run for run in runs if run.is_finished()]
    if not finished:
        raise UserError(f"--out={out}: expected records of {grid.name}, found none")
    path = out / grid.name / untranslated_counts.FILE
    # Whether the place can be written is found out before minutes of counting, not after.
    with writing(path), tempfile.TemporaryFile(dir=path.parent):
        pass
    sources, outputs = disagreement.texts(finished)
    counts = dropped_word_counts(_training_text(runs[0]), sources, outputs)
    with writing(path):
        untranslated_counts.save(path, counts, outputs)
    print(f"{path}: {len(finished)} runs")


def _training_text(run: GridRun) -> Texts:
    """Loads the training text; vocabularies, which are not needed, go to a temporary folder."""
    config = from_config_dict(run.resolved())
    with tempfile.TemporaryDirectory() as vocabularies:
        return build_task(config.data, Path(vocabularies)).split("train")


if __name__ == "__main__":
    cli.run(main, USAGE, program.define_grid_flags)
