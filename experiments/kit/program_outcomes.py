"""Outcomes of programs: what is right of every output of a run, and which rare words it has.

A program that a grid runs where training ends; it reads the predictions and references that the run
has left, and decodes nothing. A word is rare if the training text's most frequent ones do not have
it, as many as an experiment's vocabulary of words has: so it is the same for every system.
"""

import dataclasses
from collections.abc import Collection

import numpy as np
from jaxtyping import Float

from attention_jax.data.text.code import code_words
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.evaluation.code import match_counts, recall_counts
from attention_jax.runs.load import TrainedRun, task_of
from attention_jax.sweeps.grid import GridRun
from attention_jax.training.loop import count_parameters
from experiments.kit import kept_counts

USAGE = """
Counts what is right of every test program of a run, from its predictions.test.tsv.

usage: python -m experiments.kit.program_outcomes --workdir=RUN
"""
FILE = "program_outcomes.npz"
# How many of the most frequent words of the training programs are not rare.
FREQUENT = {"django": 2000, "hearthstone": 1000}
_OTHERS = 14  # of made-up code, whose names are all rare


@dataclasses.dataclass(frozen=True, eq=False)
class ProgramOutcomes:
    """One seed of a system: a row for each program, as `evaluation.seeds` takes it.

    Attributes:
      counts: Whether a program is right, 1, its rare words that were written, and all of these.
    """

    counts: Float[np.ndarray, "N 4"]

    def score(self, sums: Float[np.ndarray, "*N 4"]) -> Float[np.ndarray, "*N"]:
        """Exact match in percent, of sums of rows."""
        return 100 * sums[..., 0] / sums[..., 1]

    @property
    def rare_word_recall(self) -> float:
        """How many of the rare words of references the outputs have, in percent."""
        *_, found, wanted = self.counts.sum(axis=0)
        return float(100 * found / max(wanted, 1))


def outcomes(run: TrainedRun, known: Collection[str]) -> ProgramOutcomes:
    """Reads the predictions of a run for its test split.

    Args:
      run: The run.
      known: Words that are not rare.

    Raises:
      RunDirectoryError: If there is no such file, or no prediction in it.
    """
    rows = kept_counts.predictions(run.directory.prediction_table("test"))
    outputs = [code_words(row["output"]) for row in rows]
    references = [code_words(row["reference"]) for row in rows]
    is_right = match_counts(outputs, [[reference] for reference in references])
    rare = recall_counts(outputs, references, known)
    return ProgramOutcomes(np.concatenate([is_right, rare], axis=-1))


def frequent_words(run: TrainedRun) -> set[str]:
    """Returns the most frequent words of a run's training programs."""
    size = FREQUENT.get(run.config.data.name, _OTHERS)
    targets = task_of(run).split("train").targets
    vocabulary = SymbolVocabulary.train("code", targets, size)
    return set(vocabulary.tokens(range(vocabulary.size)))


def record(run: TrainedRun) -> None:
    """Writes the outcomes of the test split into the run directory, and how many parameters."""
    kept_counts.write(run, FILE, outcomes(run, frequent_words(run)).counts)
    run.directory.add_to_run(num_parameters=count_parameters(run.params))


def of_run(run: GridRun) -> ProgramOutcomes:
    """Returns what is right of the programs of a finished run, from its record."""
    return ProgramOutcomes(kept_counts.of_run(run, FILE))


if __name__ == "__main__":
    kept_counts.run_program(record, USAGE)
