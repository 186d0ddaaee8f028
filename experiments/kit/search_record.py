"""Measures what approximate searches cost a trained run, sentence by sentence."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags

from attention_jax.analysis.evaluate import Evaluation
from attention_jax.commands import cli
from attention_jax.evaluation.bleu import bleu_statistics
from attention_jax.runs.load import TrainedRun, load_run, task_of
from attention_jax.sweeps.grid import GridRun
from attention_jax.training.loop import count_parameters
from experiments.kit import sentence_measures
from experiments.kit.sentence_measures import SentenceMeasure
from experiments.kit.variants import Variant

USAGE = """
Translates the test sentences of a trained run with searches in float32 over the whole vocabulary,
in int8, and with shortlists.

usage: python -m experiments.kit.search_record --workdir=DIRECTORY

Writes search_measures.npz: of each search, by the name SEARCH.MEASURE, the BLEU statistics of its
outputs, and of how many sentences the output is another one than in float32.
"""
FILE = "search_measures.npz"
EXACT = "float32"
SEARCHES: Mapping[str, Variant] = {
    EXACT: Variant("float32, all words"),
    "int8": Variant("int8, all words", {"dtype": "int8"}),
    "shortlist_50": Variant("float32, 50 translations a word", {"shortlist": 50}),
    "shortlist_10": Variant("float32, 10 translations a word", {"shortlist": 10}),
    "both": Variant("int8, 50 translations a word", {"dtype": "int8", "shortlist": 50}),
}
BLEU, CHANGED = "bleu", "changed"


def main() -> None:
    """Measures the run."""
    cli.use_compilation_cache()
    record(load_run(cli.require("workdir")))


def record(run: TrainedRun) -> None:
    """Writes the measures of a run."""
    sentence_measures.save(run.directory.path / FILE, measure(run))
    run.directory.add_to_run(num_parameters=count_parameters(run.params))


def measure(run: TrainedRun) -> dict[str, Any]:
    """Counts BLEU and changed outputs of all searches, sentence by sentence."""
    task = task_of(run)
    references = task.split("test").references
    outputs: dict[str, Sequence[str]] = {}
    for name, search in SEARCHES.items():
        outputs[name] = Evaluation(_searching(run, search.overrides), task).decode("test").texts
    tokenize, counts = run.config.data.bleu_tokenizer, {}
    for name, texts in outputs.items():
        counts[f"{name}.{BLEU}"] = bleu_statistics(texts, references, tokenize=tokenize)
        pairs = zip(texts, outputs[EXACT], strict=True)
        counts[f"{name}.{CHANGED}"] = np.array([(one != other, 1) for one, other in pairs], float)
    return counts


def of_run(run: GridRun) -> dict[str, dict[str, SentenceMeasure]]:
    """Reads the measures of a finished run, by search and measure.

    Raises:
      RunDirectoryError: If its record has none.
    """
    return sentence_measures.by_name(run.arrays(FILE))


def _searching(run: TrainedRun, fields: Mapping[str, Any]) -> TrainedRun:
    """Returns the run with another search."""
    search = dataclasses.replace(run.config.search, **fields)
    return dataclasses.replace(run, config=dataclasses.replace(run.config, search=search))


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, which are not those of programs that import this module."""
    flags.DEFINE_string("workdir", None, "The run's directory.")
    return argv


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
