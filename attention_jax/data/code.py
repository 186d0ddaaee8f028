"""Code and what it does: what data sets share that turn a description into a program's text."""

import dataclasses
import gzip
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data import storage
from attention_jax.data.config import DataConfig, SubwordsConfig
from attention_jax.errors import DataError


@dataclasses.dataclass(frozen=True, kw_only=True)
class CodeConfig(DataConfig):
    """What every data set of code has.

    Attributes:
      subwords: How text becomes tokens. A readout that copies has something to copy where a
        vocabulary lacks words: with the kinds `code` and `words`, and a size that is not enough
        for all of them.
    """

    task: ClassVar[str] = "code"
    subwords: SubwordsConfig = setting(SubwordsConfig(kind="code", size=2000))


def obtain_lines(relative: str, url: str, digest: str) -> list[str]:
    """Returns the lines of a published file, also if the user's copy of it is compressed.

    Args:
      relative: Path of the file below `ATTENTION_JAX_DATA`, where it may have `.gz` at its end.
      url: Its public address.
      digest: The SHA-256 of what was published, which is that of the decompressed copy.

    Raises:
      DataError: If it cannot be obtained, or is another file.
    """
    root = storage.data_root()
    compressed = None if root is None else root / f"{relative}.gz"
    if compressed is None or not compressed.is_file():
        return _lines(storage.obtain(relative, url, digest).read_bytes())
    content = _decompressed(compressed)
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise DataError(f"{compressed}: expected sha256 {digest} of its content, found {found}")
    return _lines(content)


def check_lengths(name: str, descriptions: Sequence[str], programs: Sequence[str]) -> None:
    """Raises `DataError` if a data set has not as many descriptions as programs."""
    if len(descriptions) != len(programs):
        raise DataError(
            f"{name}: expected as many descriptions as programs, found {len(descriptions)} and "
            f"{len(programs)}"
        )


def _decompressed(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: expected a gzip file, found a damaged one ({error})") from None


def _lines(content: bytes) -> list[str]:
    # Only a newline ends a line: strings in programs may hold other characters that end lines.
    return content.decode("utf-8").removesuffix("\n").split("\n")
