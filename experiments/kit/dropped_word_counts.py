"""Untranslated source words of every run, kept as counts of each sentence in one file."""

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from attention_jax.runs.files import replacing
from attention_jax.sweeps.kept_files import kept_arrays
from experiments.kit.sentence_measures import SentenceMeasure

FILE = "untranslated.npz"
MEASURE = "dropped"
_CHECKSUM = "checksum of "


Texts = Mapping[str, Sequence[str]]


def save(path: Path, counts: Mapping[str, Sequence[tuple[int, int]]], outputs: Texts) -> None:
    """Writes (untranslated, all) content words of each sentence, by the runs' names.

    Args:
      path: The file.
      counts: The counts of each run, and of the references.
      outputs: The outputs that were counted, by the same names. A checksum of them is kept, so that
        counts of other outputs are not taken for theirs.
    """
    rows = {name: np.asarray(of_run, np.uint8) for name, of_run in counts.items()}
    checksums = {f"{_CHECKSUM}{name}": _checksum(outputs[name]) for name in counts}
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **rows, **checksums)


def load(path: Path, outputs: Texts) -> dict[str, SentenceMeasure]:
    """Reads what `save` has written, for outputs that are still the same.

    Args:
      path: The file; if there is none, there are no counts.
      outputs: The runs' present outputs, by their names.

    Raises:
      RunDirectoryError: If the file is damaged.
    """
    if not path.exists():
        return {}
    found = kept_arrays(path, "counts of untranslated words")
    known = [
        name
        for name in outputs
        if f"{_CHECKSUM}{name}" in found and found[_CHECKSUM + name] == _checksum(outputs[name])
    ]
    return {name: SentenceMeasure(MEASURE, found[name].astype(float)) for name in known}


def _checksum(outputs: Sequence[str]) -> np.uint32:
    return np.uint32(zlib.crc32("\n".join(outputs).encode()))
