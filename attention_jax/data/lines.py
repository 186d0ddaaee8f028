"""Text files read as lines, be they plain, compressed, pipes or the standard input."""

import gzip
import os
import re
import stat
import sys
import zlib
from pathlib import Path

from attention_jax.errors import DataError
from attention_jax.spaced_words import strip_spaces

MAX_LINE_CHARACTERS = 10_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_STANDARD_INPUT = "standard input"
_DESCRIPTOR = re.compile(r"/dev/(?:stdin|fd/(\d+))|/proc/self/fd/(\d+)")

# The content of pipes, which can be read only once, by device and inode.
_read_once: dict[tuple[int, int], bytes] = {}


def read_lines(path: str | Path) -> list[str]:
    r"""Reads a UTF-8 text file, one string per line, without the line ends.

    Only `\n` ends a line: `str.splitlines` would also break at characters such as U+2028, and
    shift one side of a corpus against the other. A byte order mark and `\r\n` line ends are
    accepted; a file whose name ends in `.gz` is decompressed. A pipe, such as `<(zcat FILE)` in a
    shell, can be read repeatedly like a file, because its content is remembered.

    Raises:
      DataError: Naming file and line, if the file is missing or empty, or a line is not UTF-8 or
        holds a NUL character.
    """
    path = Path(path)
    return _decoded_lines(str(path), _read_bytes(path))


def read_standard_input() -> list[str]:
    """Reads the rest of the standard input, as `read_lines` reads a file.

    Raises:
      DataError: As `read_lines`, and if the standard input is closed.
    """
    if sys.stdin is None:
        raise DataError(f"{_STANDARD_INPUT}: expected text, found it closed")
    try:
        content = _read_descriptor(sys.stdin.fileno())
    except OSError as error:
        raise DataError(f"{_STANDARD_INPUT}: expected it readable ({error.strerror})") from None
    return _decoded_lines(_STANDARD_INPUT, content)


def read_pairs(sources: str | Path, targets: str | Path) -> list[tuple[str, str]]:
    """Parallel text: reads two files line by line; see `read_columns`."""
    return read_columns(sources, targets)


def read_columns(first: str | Path, *others: str | Path) -> list[tuple[str, ...]]:
    """Parallel text: reads files line by line, without surrounding spaces and tabs.

    Raises:
      DataError: As `read_lines`, and if the files have different numbers of lines.
    """
    columns = [read_lines(first)]
    for path in others:
        lines = read_lines(path)
        if len(lines) != len(columns[0]):
            raise DataError(
                f"{path}: expected {len(columns[0])} lines as in {first}, found {len(lines)}"
            )
        columns.append(lines)
    return [tuple(map(strip_spaces, row)) for row in zip(*columns, strict=True)]


def _read_bytes(path: Path) -> bytes:
    """Reads a file, pipe or descriptor, decompressed if its name says so."""
    try:
        descriptor = _DESCRIPTOR.fullmatch(str(path))
        if descriptor:
            content = _read_descriptor(int(descriptor[1] or descriptor[2] or 0))
        else:
            content = _read_file(path)
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except FileNotFoundError:
        raise DataError(f"{path}: expected a text file, found none") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: expected a gzip file, found a damaged one ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: expected a readable file ({error.strerror})") from None


def _read_file(path: Path) -> bytes:
    """Reads a file, or a named pipe the first time."""
    status = path.stat()
    if not stat.S_ISFIFO(status.st_mode):
        return path.read_bytes()
    place = status.st_dev, status.st_ino
    if place not in _read_once:
        _read_once[place] = path.read_bytes()
    return _read_once[place]


def _read_descriptor(number: int) -> bytes:
    """Reads the rest of an open file.

    Its name, such as `/dev/stdin`, is not opened again: a file whose beginning has been read would
    start over, and sockets and files of other users would refuse.
    """
    status = os.fstat(number)
    place = status.st_dev, status.st_ino
    if place not in _read_once:
        # A non-blocking socket would give only what has arrived so far.
        os.set_blocking(number, True)
        with os.fdopen(os.dup(number), "rb") as file:
            # `dup`, because the file is closed at the end of the block, and is not ours.
            _read_once[place] = file.read()
    return _read_once[place]


def _decoded_lines(name: str, content: bytes) -> list[str]:
    lines = content.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    if not lines[-1]:  # behind the last line end
        lines.pop()
    if not lines:
        raise DataError(f"{name}: expected one sentence a line, found an empty file")
    return [_decoded(name, number, line) for number, line in enumerate(lines, start=1)]


def _decoded(name: str, number: int, line: bytes) -> str:
    if b"\0" in line:
        raise DataError(f"{name}:{number}: expected UTF-8 text, found a NUL character (UTF-16?)")
    try:
        return line.decode("utf-8").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}:{number}: expected UTF-8 text, found byte 0x{line[error.start]:02x} "
            f"at column {error.start + 1}"
        ) from None
