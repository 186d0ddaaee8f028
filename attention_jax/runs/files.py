"""Atomic writes: texts and JSON as files that are either complete or absent."""

import gzip
import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

from attention_jax.files import replacing


def write_text(path: pathlib.Path, text: str) -> None:
    """Writes `text` as UTF-8 in one piece, compressed where the name ends in `.gz`."""
    # A path in it may hold bytes that are no UTF-8: as backslash escapes, which JSON reads back.
    content = text.encode("utf-8", "backslashreplace")
    # Without the time of writing, the same text gives the same bytes, which git and hashes see.
    with replacing(path) as temporary:
        temporary.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def write_json(path: pathlib.Path, value: Any) -> None:
    """Writes `value` as indented JSON in one piece, numbers that are not finite as null."""
    text = json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def _finite(value: Any) -> Any:
    """Returns plain data with None for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
