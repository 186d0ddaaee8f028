"""Files of trained word aligners: written in one piece, and read back only if they are whole.

A file begins with a line of plain text: what it is, the version of its form, and the SHA-256 of all
that follows, which is a compressed NumPy archive.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.data.alignment.trained_aligners import DirectedAligner, TrainedAligner
from attention_jax.errors import DataError
from attention_jax.files import replacing

_KIND, _VERSION = "attention_jax-aligner", 1
_LONGEST_HEADING = 200
_ARRAYS = ("sources", "targets", "probs", "unseen_probs", "jumps")
_WORDS = ("source_words", "target_words")


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
      DataError: If there is no such file, it is something else, or it is damaged.
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
        raise DataError(
            f"{path}: expected an aligner as `launch.align train --model` writes it, found "
            "something else"
        )
    if words[1] != str(_VERSION):
        raise DataError(f"{path}: expected an aligner of form {_VERSION}, found form {words[1]}")
    if hashlib.sha256(packed).hexdigest() != words[2]:
        raise DataError(
            f"{path}: expected what its checksum says, found a damaged file ({len(content):,} "
            "bytes); train it again"
        )
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        about = json.loads(_text(arrays["about"]))
        directions = {name: _direction(arrays, name) for name in about["directions"]}
    return TrainedAligner(about["method"], directions)


def _direction(arrays: Mapping[str, Any], name: str) -> DirectedAligner:
    words = {field: _text(arrays[f"{name}/{field}"]).split("\n") for field in _WORDS}
    return DirectedAligner(**words, **{field: arrays[f"{name}/{field}"] for field in _ARRAYS})


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def _text(values: np.ndarray) -> str:
    return values.tobytes().decode("utf-8", "surrogatepass")
