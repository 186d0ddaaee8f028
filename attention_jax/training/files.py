"""Files that are either complete or absent, whatever happens to the process writing them."""

import contextlib
import json
import os
import pathlib
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


def write_text(path: pathlib.Path, text: str) -> None:
    """Writes `text` as UTF-8 in one piece."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: pathlib.Path, value: Any) -> None:
    """Writes `value` as indented JSON in one piece."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
