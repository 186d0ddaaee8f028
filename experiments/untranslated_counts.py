"""Untranslated source words of every run of a comparison, kept as counts of each sentence."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from attention_jax.training.files import replacing
from experiments.sentence_measures import SentenceMeasure

FILE = "untranslated.npz"
MEASURE = "dropped"
REFERENCE = "reference"


def save(path: Path, counts: Mapping[str, Sequence[tuple[int, int]]]) -> None:
    """Writes (untranslated, all) content words of each sentence, by the runs' names."""
    with replacing(path) as temporary:
        rows = {name: np.asarray(of_run, np.uint8) for name, of_run in counts.items()}
        np.savez_compressed(temporary, **rows)


def load(path: Path) -> dict[str, SentenceMeasure]:
    """Reads what `save` has written; nothing if there is no such file."""
    if not path.exists():
        return {}
    with np.load(path) as file:
        return {name: SentenceMeasure(MEASURE, file[name].astype(float)) for name in file.files}
