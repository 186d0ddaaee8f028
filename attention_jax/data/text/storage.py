"""Saved vocabularies: loads one of any kind, and the pair that a run directory holds."""

import json
from pathlib import Path

from attention_jax.data.text.byte_pairs import BytePairVocabulary
from attention_jax.data.text.pieces import PieceVocabulary
from attention_jax.data.text.subwords import SubwordVocabulary
from attention_jax.data.text.vocabulary import (
    BYTE_PAIRS,
    PIECES,
    SUBWORDS,
    SymbolVocabulary,
    Vocabulary,
    read_record,
    write_atomically,
)
from attention_jax.errors import DataError
from attention_jax.json_files import read_json

PAIR_FILE = "vocabularies.json"
SIDES = ("source", "target")
_JOINT = "joint"
_LOADERS = {
    SUBWORDS: SubwordVocabulary.load,
    PIECES: PieceVocabulary.load,
    BYTE_PAIRS: BytePairVocabulary.load,
}


def load_vocabulary(directory: str | Path) -> Vocabulary:
    """Reads a vocabulary of any kind that its `save` wrote.

    Raises:
      DataError: If a file is missing or damaged.
    """
    record = read_record(directory)
    if record["kind"] in _LOADERS:
        return _LOADERS[record["kind"]](directory)
    return SymbolVocabulary(record["kind"], record["symbols"])


def save_vocabularies(directory: str | Path, source: Vocabulary, target: Vocabulary) -> None:
    """Saves the vocabularies of a run, a joint one only once."""
    names = (_JOINT, _JOINT) if source is target else SIDES
    for name, vocabulary in dict(zip(names, (source, target), strict=True)).items():
        vocabulary.save(Path(directory) / name)
    # Written last: where this file is, the others are complete.
    pair = json.dumps(dict(zip(SIDES, names, strict=True)))
    write_atomically(Path(directory) / PAIR_FILE, pair.encode())


def has_vocabularies(directory: str | Path) -> bool:
    """Says whether the vocabularies of a run have been saved here, completely."""
    return (Path(directory) / PAIR_FILE).exists()


def load_vocabularies(directory: str | Path) -> tuple[Vocabulary, Vocabulary]:
    """Reads the source and target vocabularies of a run; a joint one is the same object twice.

    Raises:
      DataError: If a file is missing or damaged.
    """
    path = Path(directory) / PAIR_FILE
    try:
        names = read_json(path, dict.fromkeys(SIDES, {_JOINT, *SIDES}))
    except FileNotFoundError:
        raise DataError(f"{path}: expected the vocabularies of a run, found none") from None
    source, target = (names[side] for side in SIDES)
    vocabulary = load_vocabulary(path.parent / source)
    return vocabulary, vocabulary if source == target else load_vocabulary(path.parent / target)
