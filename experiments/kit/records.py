"""Records: what is kept of a finished run, to say how it was made and what came out of it."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_jax.errors import RunDirectoryError, UserError
from attention_jax.plotting.curves import curves_by_metric, read_metrics
from attention_jax.runs.run_directory import RunDirectory, read_json, writing
from experiments.kit.archive import Record
from experiments.kit.arrays import read_arrays, read_lines

FILES = ("config.json", "run.json", "results.json")
Kept = Mapping[str, Sequence[str] | None]


def record_of(
    run: Path,
    cell: str,
    seed: int,
    overrides: Mapping[str, Any],
    kept: Kept | None = None,
    curves: Sequence[str] = (),
) -> Record:
    """Returns the record of a finished run.

    Args:
      run: The directory of the run.
      cell: Its cell in a grid.
      seed: Its seed.
      overrides: What it was made with.
      kept: Files of arrays, `.npz`, and which of them are kept, all where it is None; and files of
        compressed lines.
      curves: Metrics whose course is kept.

    Raises:
      RunDirectoryError: If the run has not left one of the files, or it is damaged.
    """
    files = read_record(run)
    arrays, lines = {}, {}
    for name, chosen in (kept or {}).items():
        if name.endswith(".npz"):
            found = read_arrays(run / name, "arrays")
            arrays[name] = {key: found[key] for key in found if chosen is None or key in chosen}
        else:
            lines[name] = read_lines(run / name)
    return Record(
        cell=cell,
        seed=seed,
        overrides=dict(overrides),
        config=files["config.json"],
        facts=files["run.json"],
        results=files["results.json"],
        curves=_logged(run, curves) if curves else {},
        arrays=arrays,
        lines=lines,
    )


def _logged(run: Path, metrics: Sequence[str]) -> dict[str, dict[str, list]]:
    """Returns {metric: {split: [steps, values]}}; where a step was logged twice, the later one."""
    path = RunDirectory(run, writes=False).metrics
    try:
        found = curves_by_metric(read_metrics(path))
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be read: {error.strerror}") from None
    return {
        metric: {split: [part.tolist() for part in curve] for split, curve in found[metric].items()}
        for metric in metrics
        if metric in found
    }


def keep_record(run: Path, record: Path) -> None:
    """Copies the small files of a run, which are its record where there is one run only.

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
