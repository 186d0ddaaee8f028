"""Metrics over time: `metrics.jsonl`, from which learning curves and reports are made."""

import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

from attention_jax.errors import RunDirectoryError
from attention_jax.json_files import METRICS_LINE, read_json_lines
from attention_jax.runs.files import write_text
from attention_jax.runs.run_directory import writing


class MetricsWriter:
    """Appends metrics as JSON Lines: an object with step, split and the metrics by name."""

    def __init__(self, path: pathlib.Path, *, step: int):
        """Opens the file to continue it after `step`.

        Lines of later steps, written before training was cut off and about to be written again,
        are dropped, and so is half a line at the end.

        Args:
          path: `metrics.jsonl`.
          step: Updates made so far.

        Raises:
          RunDirectoryError: If the file cannot be written, or a line of it holds something else.
        """
        self._path = path
        with writing(path):
            # Rewritten whole and atomically, so that a crash here leaves the old file or the new
            # one.
            kept = [line for line, value in _lines(path) if value["step"] <= step]
            write_text(path, "".join(f"{line}\n" for line in kept))
            self._file = path.open("a", encoding="utf-8")

    def write(self, step: int, split: str, metrics: Mapping[str, float]) -> None:
        """Appends a line; a value that is not finite is written as null."""
        values = {
            name: value if math.isfinite(value) else None
            for name, value in metrics.items()
            if isinstance(value, int | float)
        }
        line = json.dumps({"step": step, "split": split, **values})
        with writing(self._path):
            self._file.write(line + "\n")
            # A line at a time reaches the system, so that a killed process loses at most half a
            # line.
            self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        with writing(self._path):
            self._file.close()


def _lines(path: pathlib.Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Returns the complete lines of a file with their parsed values; none if there is no file."""
    if not path.exists():
        return []
    return read_json_lines(path, METRICS_LINE, RunDirectoryError)
