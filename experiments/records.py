"""Records: the small files of a finished run that say how it was made and what came out of it."""

import shutil
from pathlib import Path
from typing import Any

from attention_jax.errors import RunDirectoryError, UserError
from attention_jax.training.run_directory import read_json, writing

FILES = ("config.json", "run.json", "results.json")


def keep_record(run: Path, record: Path) -> None:
    """Copies the record of a run.

    Raises:
      UserError: As `require_finished`, or if the record cannot be written.
    """
    require_finished(run)
    with writing(record):
        record.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copyfile(run / name, record / name)


def require_finished(run: Path) -> None:
    """Makes sure that a run has what belongs into a record.

    Raises:
      UserError: If it is not finished, was not evaluated on its test split, or cannot be read.
    """
    missing = [name for name in FILES if not (run / name).is_file()]
    if missing:
        raise UserError(f"--run: expected a finished run, found no {missing[0]} in {run}")
    if not read_json(run / "run.json").get("finished"):
        raise UserError(f"--run: expected a finished run, found one that has not ended in {run}")
    if "test" not in read_json(run / "results.json"):
        raise UserError(f"--run: expected results of the test split, found none in {run}")


def read_record(record: Path) -> dict[str, Any]:
    """Returns the record's files by their names.

    Raises:
      RunDirectoryError: If one is missing or cut off.
    """
    found = {name: read_json(record / name) for name in FILES}
    missing = [name for name, value in found.items() if value is None]
    if missing:
        raise RunDirectoryError(f"{record}: expected a record, found no {missing[0]} in it")
    return found
