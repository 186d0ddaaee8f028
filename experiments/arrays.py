"""Arrays of records: what is in a file, or one line."""

import io
import zipfile
import zlib
from pathlib import Path

import numpy as np

from attention_jax.errors import RunDirectoryError


def read_arrays(path: Path, what: str) -> dict[str, np.ndarray]:
    """Reads all arrays of an `.npz` file by their names.

    Args:
      path: The file.
      what: What it should hold, for the message.

    Raises:
      RunDirectoryError: If there is no such file, or it is damaged or something else.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes())) as file:  # it leaves a damaged file open
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise RunDirectoryError(f"{path}: expected {what}, {error}") from None
