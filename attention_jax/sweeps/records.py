"""Records of finished runs: how a run was made, and what came out of it."""

import datetime
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_jax.errors import RunDirectoryError, UserError
from attention_jax.plotting.curves import curves_by_metric, read_metrics
from attention_jax.runs.run_directory import RunDirectory, read_json, writing
from attention_jax.sweeps.archive import Record
from attention_jax.sweeps.kept_files import kept_arrays, kept_lines

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
    """Makes the record of a finished run from its files.

    Args:
      run: The run directory.
      cell: Its cell in a grid.
      seed: Its seed.
      overrides: The overrides that it was made with.
      kept: Files to keep: `.npz` files with the names of the arrays, or None for all of them; and
        files of compressed lines.
      curves: Metrics whose curve is kept.

    Raises:
      RunDirectoryError: If one of the files is missing or damaged.
    """
    files = read_record(run)
    arrays, lines = {}, {}
    for name, chosen in (kept or {}).items():
        # Of arrays, perhaps only some are kept: records are committed and must stay small.
        if name.endswith(".npz"):
            found = kept_arrays(run / name, "arrays")
            arrays[name] = {key: found[key] for key in found if chosen is None or key in chosen}
        else:
            lines[name] = kept_lines(run / name)
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
    """Reads logged metrics, {metric: {split: [steps, values]}}; of a repeated step, the last."""
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
    """Copies the small files of a run: the record of an experiment that has only one run.

    Raises:
      UserError: As `require_finished`, or if the record cannot be written.
    """
    require_finished(run)
    with writing(record):
        record.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copyfile(run / name, record / name)


def require_finished(run: Path) -> None:
    """Checks that a run is finished and has the files that a record needs.

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
    """Reads the files of a record by their names; a run that evaluates no split has no results.

    Raises:
      RunDirectoryError: If one is missing or cut off.
    """
    found = {name: read_json(record / name) for name in FILES}
    evaluation = (found["config.json"] or {}).get("evaluation")
    evaluates_none = isinstance(evaluation, dict) and evaluation.get("splits") == []
    if found["results.json"] is None and evaluates_none:
        found["results.json"] = {}
    missing = [name for name, value in found.items() if value is None]
    if missing:
        raise RunDirectoryError(f"{record}: expected a record, found no {missing[0]} in it")
    return found


def minutes(facts: Mapping[str, Any]) -> float | None:
    """Run time: from a run's beginning to the end of its evaluation, by its `run.json`.

    Returns:
      Minutes; None for a run that was continued, of which nobody knows how long it stood still.
    """
    if len(facts["started"]) > 1:
        return None
    first, last = map(datetime.datetime.fromisoformat, (*facts["started"], facts["finished"]))
    return (last - first).total_seconds() / 60
