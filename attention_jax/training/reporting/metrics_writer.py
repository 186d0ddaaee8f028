"""Metrics over time: `metrics.jsonl`, from which all else is drawn."""

import json
import math
import pathlib
from collections.abc import Mapping

from attention_jax.training.files import write_text
from attention_jax.training.run_directory import writing


class MetricsWriter:
    """Appends one JSON object a line: step, split, and the metrics by name."""

    def __init__(self, path: pathlib.Path, *, step: int):
        """Opens the file to continue it after `step`.

        Lines of later steps, written before training was cut off and about to be written again,
        are dropped, and so is half a line at the end.

        Args:
          path: `metrics.jsonl`.
          step: Updates made so far.
        """
        self._path = path
        with writing(path):
            kept = [line for line in _lines(path) if json.loads(line)["step"] <= step]
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
            self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        with writing(self._path):
            self._file.close()


def _lines(path: pathlib.Path) -> list[str]:
    """Returns the whole lines of a file, none if there is no file."""
    if not path.exists():
        return []
    lines = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and "step" in value:
            lines.append(line)
    return lines
