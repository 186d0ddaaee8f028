"""Counts that records keep of a run: a row for each sentence, as `evaluation.seeds` takes it.

What the programs share that a grid runs where training ends (`Grid.after`): they count what is in
the predictions of the run, or what its model makes of a text, and leave one array.
"""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from absl import flags

from attention_jax.commands import cli
from attention_jax.errors import RunDirectoryError
from attention_jax.runs.load import TrainedRun, load_run
from attention_jax.runs.run_directory import writing
from attention_jax.sweeps.grid import GridRun
from attention_jax.sweeps.records import Kept

ARRAY = "counts"


def kept(file: str) -> Kept:
    """Returns what a record is to keep of a file that `write` has written."""
    return {file: (ARRAY,)}


def write(run: TrainedRun, file: str, counts: np.ndarray) -> None:
    """Writes counts into the run directory.

    Raises:
      RunDirectoryError: If they cannot be written.
    """
    path = run.directory.path / file
    with writing(path):
        np.savez_compressed(path, **{ARRAY: counts.astype(np.float32)})


def of_run(run: GridRun, file: str) -> np.ndarray:
    """Returns the counts of a finished run.

    Raises:
      RunDirectoryError: If its record has none.
    """
    return run.arrays(file)[ARRAY].astype(np.float64)


def predictions(path: Path) -> list[dict[str, str]]:
    """Reads the rows of a run's `predictions.SPLIT.tsv`, by the names of its columns.

    Raises:
      RunDirectoryError: If there is no such file, or no prediction in it.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be read: {error.strerror}") from None
    if not rows:
        raise RunDirectoryError(f"{path}: expected predictions, found none")
    return rows


def run_program(record: Callable[[TrainedRun], None], usage: str) -> None:
    """Runs the program that counts: `python -m MODULE --workdir=RUN`.

    Args:
      record: Counts and writes.
      usage: The text of `--help`.
    """
    cli.run(lambda: record(load_run(cli.require("workdir"))), usage, _define_flags)


def _define_flags(argv: list[str]) -> list[str]:
    flags.DEFINE_string("workdir", None, "Directory of a finished run.")
    return argv
