"""Files of trained word aligners: written in one piece, and read back only if they are whole.

A file begins with a line of plain text: what it is, the version of its form, and the SHA-256 of all
that follows, which is a compressed NumPy archive.
"""

import hashlib
import io
import json
from pathlib import Path

import numpy as np

from attention_jax.array_files import Form, read_arrays
from attention_jax.data.alignment.aligners import DIRECTIONS
from attention_jax.data.alignment.trained_aligners import (
    MODELS,
    DirectedAligner,
    TrainedAligner,
)
from attention_jax.errors import DataError
from attention_jax.files import replacing
from attention_jax.json_files import parse_json

_KIND, _VERSION = "attention_jax-aligner", 1
_LONGEST_HEADING = 200
_ROUNDING = 1e-6  # by which a probability may be below 0 or above 1
_EXPECTED = "expected an aligner as `launch.align train --model` writes it"
_ABOUT = {"method": {*MODELS}, "directions": [{*DIRECTIONS}]}
_NUMBERS, _REALS, _TEXT = Form("i", 1), Form("f", 1), Form("u", 1)
_ARRAYS = {
    "sources": _NUMBERS, "targets": _NUMBERS, "probs": _REALS, "unseen_probs": _REALS,
    "jumps": _REALS,
}  # fmt: skip
_WORDS = {"source_words": _TEXT, "target_words": _TEXT}
_FORMS = {**_ARRAYS, **_WORDS}


def write_aligner(path: Path, aligner: TrainedAligner) -> None:
    """Writes a trained aligner.

    Raises:
      OSError: If it cannot be written.
    """
    about = {"method": aligner.method, "directions": list(aligner.directions)}
    arrays = {"about": _bytes(json.dumps(about))}
    for name, direction in aligner.directions.items():
        for field in _ARRAYS:
            arrays[f"{name}/{field}"] = getattr(direction, field)
        for field in _WORDS:  # no word has a line end in it
            arrays[f"{name}/{field}"] = _bytes("\n".join(getattr(direction, field)))
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    packed = content.getvalue()
    heading = f"{_KIND} {_VERSION} {hashlib.sha256(packed).hexdigest()}\n"
    with replacing(path) as temporary:
        temporary.write_bytes(heading.encode() + packed)


def read_aligner(path: Path) -> TrainedAligner:
    """Reads a trained aligner.

    Raises:
      DataError: If there is no such file, it is something else, it is damaged, or what it holds
        does not fit together.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: expected a trained aligner, found no file") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from None
    heading, _, packed = content.partition(b"\n")
    words = heading[:_LONGEST_HEADING].decode("utf-8", "replace").split(" ")
    if len(words) != 3 or words[0] != _KIND:
        raise DataError(f"{path}: {_EXPECTED}, found something else")
    if words[1] != str(_VERSION):
        raise DataError(f"{path}: expected an aligner of form {_VERSION}, found form {words[1]}")
    if hashlib.sha256(packed).hexdigest() != words[2]:
        raise DataError(
            f"{path}: expected what its checksum says, found a damaged file ({len(content):,} "
            "bytes); train it again"
        )
    expected = f"{path}: {_EXPECTED}"
    about = read_arrays(packed, {"about": _TEXT}, expected)["about"].tobytes()
    about = parse_json(about, _ABOUT, str(path))
    if not about["directions"]:
        raise DataError(f"{expected}, found one of no direction")
    method = about["method"]
    directions = {name: _direction(packed, name, method, expected) for name in about["directions"]}
    return TrainedAligner(method, directions)


def _direction(packed: bytes, name: str, method: str, expected: str) -> DirectedAligner:
    forms = {f"{name}/{field}": form for field, form in _FORMS.items()}
    found = read_arrays(packed, forms, expected)
    arrays = {field: found[f"{name}/{field}"] for field in _ARRAYS}
    try:
        words = {field: _text(found[f"{name}/{field}"]).split("\n") for field in _WORDS}
    except UnicodeDecodeError:
        raise DataError(f"{expected}, found words that are no UTF-8") from None
    if problem := _problem(*map(len, words.values()), **arrays):
        raise DataError(f"{expected}, found {problem} of the direction {name}")
    if (method == "ibm1") != (len(arrays["jumps"]) == 0):
        raise DataError(f"{expected}, found jumps that do not go with {method}")
    return DirectedAligner(**words, **arrays)


def _problem(
    num_sources: int,
    num_targets: int,
    sources: np.ndarray,
    targets: np.ndarray,
    probs: np.ndarray,
    unseen_probs: np.ndarray,
    jumps: np.ndarray,
) -> str | None:
    """Returns what in a direction does not fit the rest of it; None if all does."""
    if not 0 < len(probs) == len(sources) == len(targets):
        return "other numbers of probabilities than of word pairs"
    if len(unseen_probs) != num_sources + 1:  # NULL has one too
        return "other numbers of probabilities than of words"
    is_source = (sources >= 0) & (sources <= num_sources)
    if not (is_source & (targets >= 0) & (targets < num_targets)).all():
        return "pairs of other words than those"
    if (np.diff(sources.astype(np.int64) * num_targets + targets) <= 0).any():
        return "word pairs out of order"
    every = np.concatenate([probs, unseen_probs])
    if every.min() < -_ROUNDING or every.max() > 1 + _ROUNDING:
        return "probabilities below 0 or above 1"
    # None, or as many to the left as to the right.
    is_centred = len(jumps) == 0 or len(jumps) % 2 and jumps.min() > 0
    return None if is_centred else "no weights of jumps"


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def _text(values: np.ndarray) -> str:
    return values.tobytes().decode("utf-8", "surrogatepass")
