"""Reading lines of text from files that may be anything."""

import gzip
import zlib
from pathlib import Path

from attention_jax.errors import DataError

MAX_LINE_CHARACTERS = 10_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_lines(path: str | Path) -> list[str]:
    r"""Reads a UTF-8 text file, one string per line, without the line ends.

    Lines end at `\n` alone, so that characters such as U+2028 do not shift one side of a corpus
    against the other. A byte order mark and `\r\n` line ends are accepted; a name ending in
    `.gz` is decompressed.

    Raises:
      DataError: Naming file and line, if the file is missing or empty, or a line is not UTF-8 or
        holds a NUL character.
    """
    path = Path(path)
    return [
        _decoded(path, number, line)
        for number, line in enumerate(_raw_lines(path, _read_bytes(path)), start=1)
    ]


def read_pairs(sources: str | Path, targets: str | Path) -> list[tuple[str, str]]:
    """Reads two text files side by side, without surrounding white space.

    Raises:
      DataError: As `read_lines`, and if the files have different numbers of lines.
    """
    source_lines, target_lines = read_lines(sources), read_lines(targets)
    if len(source_lines) != len(target_lines):
        raise DataError(
            f"{targets}: expected {len(source_lines)} lines as in {sources}, "
            f"found {len(target_lines)}"
        )
    return [
        (source.strip(), target.strip())
        for source, target in zip(source_lines, target_lines, strict=True)
    ]


def _read_bytes(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except FileNotFoundError:
        raise DataError(f"{path}: expected a text file, found none") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: expected a gzip file, found a damaged one ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: expected a readable file ({error.strerror})") from None


def _raw_lines(path: Path, content: bytes) -> list[bytes]:
    lines = content.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise DataError(f"{path}: expected one sentence a line, found an empty file")
    return lines


def _decoded(path: Path, number: int, line: bytes) -> str:
    if b"\0" in line:
        raise DataError(f"{path}:{number}: expected UTF-8 text, found a NUL character (UTF-16?)")
    try:
        return line.decode("utf-8").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}:{number}: expected UTF-8 text, found byte 0x{line[error.start]:02x} "
            f"at column {error.start + 1}"
        ) from None
