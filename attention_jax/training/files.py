"""Files that are either complete or absent, whatever happens to the process writing them."""

import contextlib
import gzip
import json
import os
import pathlib
import re
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Yields a temporary path beside `path` that takes its place if the block succeeds.

    The temporary name keeps the suffix, because some writers choose a format by it.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that `replacing` has not moved to its place."""
    return re.fullmatch(r"\..+\.\d+(\.\w+)?", name) is not None


def write_text(path: pathlib.Path, text: str) -> None:
    """Writes `text` as UTF-8 in one piece, compressed where the name ends in `.gz`."""
    content = text.encode("utf-8")
    with replacing(path) as temporary:
        temporary.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def write_json(path: pathlib.Path, value: Any) -> None:
    """Writes `value` as indented JSON in one piece."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
