"""Checksums of every file of a checkpoint, because array storage restores flipped bits silently."""

import json
import pathlib
import zlib
from collections.abc import Collection

from attention_jax.errors import CheckpointError
from attention_jax.json_files import read_json
from attention_jax.runs.files import write_json

NAME = "manifest.json"
_SHAPE = {"files": {str: {"bytes": int, "crc32": int}}, "crc32": int}
_CHUNK_BYTES = 1 << 22  # read in pieces, for a file of arrays may be larger than memory


def write_manifest(directory: pathlib.Path, *, except_for: Collection[str] = ()) -> None:
    """Records the size and CRC32 of every file below `directory`, except for the given names."""
    files = {
        path.relative_to(directory).as_posix(): {"bytes": size, "crc32": crc}
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in (NAME, *except_for)
        for size, crc in [_measure(path)]
    }
    _write(directory, files)


def add_to_manifest(directory: pathlib.Path, name: str) -> None:
    """Adds one more file to the manifest; the others are trusted to be as they were written."""
    files = json.loads((directory / NAME).read_text(encoding="utf-8"))["files"]
    size, crc = _measure(directory / name)
    _write(directory, {**files, name: {"bytes": size, "crc32": crc}})


def find_damage(directory: pathlib.Path) -> str | None:
    """Compares the files below `directory` with its manifest.

    Returns:
      None if all are as they were written, else the first difference, naming the file.

    Raises:
      FileNotFoundError: If there is no manifest.
    """
    try:
        manifest = read_json(directory / NAME, _SHAPE, CheckpointError)
    except CheckpointError:
        return f"{NAME} is damaged"
    files = manifest["files"]
    # The manifest itself may be damaged, and still be JSON of the right shape.
    if manifest["crc32"] != _checksum(files):
        return f"{NAME} is damaged"
    expected = {name: (entry["bytes"], entry["crc32"]) for name, entry in files.items()}
    for name, (size, crc) in expected.items():
        path = directory / name
        if not path.is_file():
            return f"{name} is missing"
        found_size, found_crc = _measure(path)
        if found_size != size:
            return f"{name} has {found_size} bytes, {size} were written"
        if found_crc != crc:
            return f"{name} has changed since it was written (CRC32 {found_crc:08x}, not {crc:08x})"
    return None


def _write(directory: pathlib.Path, files: dict[str, dict[str, int]]) -> None:
    write_json(directory / NAME, {"files": files, "crc32": _checksum(files)})


def _checksum(files: dict[str, dict[str, int]]) -> int:
    """Returns the CRC32 of the manifest's own entries."""
    return zlib.crc32(json.dumps(files, sort_keys=True).encode())


def _measure(path: pathlib.Path) -> tuple[int, int]:
    """Returns the size in bytes and the CRC32 of a file."""
    size, crc = 0, 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            size += len(chunk)
            crc = zlib.crc32(chunk, crc)
    return size, crc
