"""Untranslated source words of every run, kept as counts of each sentence in one file."""

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from attention_jax.errors import RunDirectoryError
from attention_jax.runs.files import replacing
from attention_jax.sweeps.kept_files import kept_arrays
from experiments.kit.sentence_measures import SentenceMeasure

FILE = "untranslated.npz"
MEASURE = "dropped"


Texts = Mapping[str, Sequence[str]]


def save(path: Path, counts: Mapping[str, Sequence[tuple[int, int]]], outputs: Texts) -> None:
    """Writes (untranslated, all) content words of each sentence, by the runs' names.

    Args:
      path: The file.
      counts: The counts of each run, and of the references.
      outputs: The outputs that were counted, by the same names. A checksum of them is kept, so that
        counts of other outputs are not taken for theirs.
    """
    # N 2 R: runs beside each other, for these are alike and compress well
    rows = np.stack([np.asarray(of_run, np.uint8) for of_run in counts.values()], axis=-1)
    checksums = [_checksum(outputs[name]) for name in counts]
    with replacing(path) as temporary:
        np.savez_compressed(temporary, names=[*counts], counts=rows, checksums=checksums)


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
    if missing := {"names", "counts", "checksums"} - found.keys():
        lacks, has = ", ".join(sorted(missing)), ", ".join(sorted(found)[:3]) or "nothing"
        raise RunDirectoryError(
            f"{path}: expected counts of untranslated words with {lacks}, found {has}; "
            "python -m experiments.dropped_words counts them again"
        )
    rows = zip(found["names"], found["checksums"], np.moveaxis(found["counts"], -1, 0), strict=True)
    return {
        str(name): SentenceMeasure(MEASURE, of_run.astype(float))
        for name, checksum, of_run in rows
        if str(name) in outputs and checksum == _checksum(outputs[str(name)])
    }


def _checksum(outputs: Sequence[str]) -> np.uint32:
    return np.uint32(zlib.crc32("\n".join(outputs).encode()))
