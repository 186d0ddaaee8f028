"""Texts and JSON as files that are either complete or absent."""

import gzip
import json
import pathlib
from typing import Any

from attention_jax.files import replacing


def write_text(path: pathlib.Path, text: str) -> None:
    """Writes `text` as UTF-8 in one piece, compressed where the name ends in `.gz`."""
    content = text.encode("utf-8")
    with replacing(path) as temporary:
        temporary.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def write_json(path: pathlib.Path, value: Any) -> None:
    """Writes `value` as indented JSON in one piece."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
