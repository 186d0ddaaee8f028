"""Files that runs leave for their records, arrays and lines of text; an error is one line."""

import gzip
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from attention_jax.array_files import unpacked_arrays
from attention_jax.errors import RunDirectoryError
from attention_jax.runs.files import write_text


def kept_arrays(path: Path, what: str) -> dict[str, np.ndarray]:
    """Reads all arrays of an `.npz` file by their names.

    Args:
      path: The file.
      what: What it should hold, for the message.

    Raises:
      RunDirectoryError: If there is no such file, or it is damaged or something else.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RunDirectoryError(f"{path}: expected {what}, {error}") from None
    return unpacked_arrays(content, f"{path}: expected {what}", error=RunDirectoryError)


def keep_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes lines to a compressed file, `.gz`; the same bytes for the same lines."""
    write_text(path, "".join(f"{line}\n" for line in lines))


def text_array(lines: Sequence[str]) -> UInt8[np.ndarray, " B"]:
    """Encodes lines as an array, for records whose arrays are numbers."""
    return np.frombuffer("\n".join(lines).encode("utf-8"), np.uint8)


def array_lines(array: UInt8[np.ndarray, " B"]) -> list[str]:
    """Returns the lines that `text_array` has encoded."""
    return array.tobytes().decode("utf-8").split("\n")


def kept_lines(path: Path) -> list[str]:
    """Reads the lines of a compressed file as they were written, be there none or empty ones.

    Raises:
      RunDirectoryError: If there is no such file, or it is damaged.
    """
    try:
        return gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")[:-1]
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise RunDirectoryError(f"{path}: expected lines of text, {error}") from None
