"""Records: the small files of a finished run that say how it was made and what came out of it."""

import json
import shutil
from pathlib import Path
from typing import Any

from attention_jax.errors import UserError

FILES = ("config.json", "run.json", "results.json")


def keep_record(run: Path, record: Path) -> None:
    """Copies the record of a run.

    Raises:
      UserError: If the run is not finished, or was not evaluated on its test split.
    """
    missing = [name for name in FILES if not (run / name).is_file()]
    if missing:
        raise UserError(f"--run: expected a finished run, found no {missing[0]} in {run}")
    if not json.loads((run / "run.json").read_text()).get("finished"):
        raise UserError(f"--run: expected a finished run, found one that has not ended in {run}")
    if "test" not in json.loads((run / "results.json").read_text()):
        raise UserError(f"--run: expected results of the test split, found none in {run}")
    record.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(run / name, record / name)


def read_record(record: Path) -> dict[str, Any]:
    """Returns the record's files by their names."""
    return {name: json.loads((record / name).read_text()) for name in FILES}
