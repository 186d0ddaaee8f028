"""The grid of an experiment: cells, each a few config overrides, times seeds.

Every run is a run directory of `launch.train`, `RUNS/EXPERIMENT/CELL/seedK`. The tables are made
from records alone, which are found by cell and seed in `OUT/EXPERIMENT/records.zip`. Records are
committed: a run that has one is finished, wherever it was trained and whatever its config would be
today.
"""

import dataclasses
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from attention_jax.commands import cli
from attention_jax.config_choices import Choices
from attention_jax.errors import ConfigError, RunDirectoryError
from attention_jax.runs.config import (
    changed_fields,
    from_config_dict,
    names_part,
    present_path,
    template,
    to_plain,
)
from attention_jax.runs.files import replacing
from attention_jax.runs.run_directory import RunDirectory, read_json, writing
from experiments.kit import archive
from experiments.kit.archive import Record
from experiments.kit.records import Kept, record_of

_BLOCK = 4096  # bytes that a full disk has no room for, although it can still make empty files
# Overrides with which a run of a `:smoke` config takes seconds.
SMOKE: Mapping[str, Any] = {
    "training.num_steps": 4,
    "training.evaluate_every_steps": 0,
    "data.num_buckets": 1,
    "data.eval_batch_size": 128,
    "search.method": "greedy",
    "evaluation.num_heat_maps": 0,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grid:
    """Runs that differ in a few fields of their configs.

    Attributes:
      name: Name of the experiment, and of its directories.
      config: Config file that all runs share, with its argument, or one for each cell.
      cells: The overrides of each cell by its name, path -> value.
      seeds: Values of `config.seed`, in which the runs of a cell differ.
      overrides: Overrides of all cells.
      after: Modules to run after training: `python -m MODULE --workdir=RUN`.
      kept: Arrays and lines of text to keep in records; see `record_of`.
      curves: Metrics whose curve over training is kept in records.
      shared: Files that are the same in all runs, kept once beside the records.
    """

    name: str
    config: str | Mapping[str, str]
    cells: Mapping[str, Mapping[str, Any]]
    seeds: Sequence[int]
    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    after: Sequence[str] = ()
    kept: Kept = dataclasses.field(default_factory=dict)
    curves: Sequence[str] = ()
    shared: Sequence[str] = ()

    def runs(self, runs: Path, out: Path) -> list["Run"]:
        """Lists the runs, seed by seed: the first ones already compare all cells.

        Args:
          runs: Where experiments train.
          out: Where experiments keep records and tables.
        """
        return [
            Run(
                grid=self,
                cell=cell,
                seed=seed,
                workdir=runs / self.name / cell / f"seed{seed}",
                records=out / self.name / archive.FILE,
            )
            for seed in self.seeds
            for cell in self.cells
        ]


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a grid.

    Attributes:
      grid: The grid that it belongs to.
      cell: Its cell.
      seed: Its seed.
      workdir: Its run directory.
      records: The archive that keeps its record, with those of the other runs.
    """

    grid: Grid
    cell: str
    seed: int
    workdir: Path
    records: Path

    @property
    def name(self) -> str:
        """Cell and seed."""
        return f"{self.cell}/seed{self.seed}"

    @property
    def log(self) -> Path:
        """Log of its programs; beside the run directory, which must be empty before training."""
        return self.workdir.with_name(f"{self.workdir.name}.log")

    @property
    def config(self) -> str:
        """Its config file, with its argument."""
        config = self.grid.config
        return config if isinstance(config, str) else config[self.cell]

    @property
    def overrides(self) -> dict[str, Any]:
        """All overrides; those of the cell override those of the grid."""
        return {**self.grid.overrides, **self.grid.cells[self.cell], "seed": self.seed}

    def arguments(self) -> list[list[str]]:
        """Returns the arguments of `python` for each command of the run, in their order."""
        overrides = [f"--config.{path}={_text(value)}" for path, value in self.overrides.items()]
        config, workdir = f"--config={self.config}", f"--workdir={self.workdir}"
        train = ["-m", "launch.train", config, workdir, *overrides]
        return [train, *(["-m", module, workdir] for module in self.grid.after)]

    def commands(self) -> list[list[str]]:
        """Returns the commands of the run, with this Python."""
        return [[sys.executable, *arguments] for arguments in self.arguments()]

    def resolved(self) -> dict[str, Any]:
        """Returns the whole config, as the run's `config.json` will hold it.

        Raises:
          ConfigError: If an override does not fit the config.
        """
        values = template(cli.load_config(self.config), Choices(self.overrides.items()))
        for path, value in self.overrides.items():
            # Choices of parts were made by `template`, which has given the parts their fields.
            if not names_part(values, path):
                _override(values, path, value)
        return to_plain(from_config_dict(values.to_dict()))

    def is_finished(self) -> bool:
        """Returns whether the run has a record.

        Raises:
          RunDirectoryError: If the records cannot be read.
        """
        return (self.cell, self.seed) in archive.load(self.records)

    def changes(self) -> str:
        """Compares the overrides of the run with those of its record, and says what changed."""
        # Through JSON, as the record went: tuples become lists, and fields may have new names.
        before = {present_path(path): value for path, value in self.record().overrides.items()}
        changed = changed_fields(before, json.loads(json.dumps(self.overrides)))
        return "; ".join(f"{path} {old!r}, now {new!r}" for path, (old, new) in changed.items())

    def shared(self, name: str) -> Path:
        """Returns the path of a file that all runs share."""
        return self.records.with_name(name)

    def require_room(self) -> None:
        """Makes the folders of the experiment, and checks that files can be written there.

        Raises:
          RunDirectoryError: If they cannot.
        """
        for folder in (self.workdir.parents[1], self.records.parent):
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder) as file:
                    file.write(bytes(_BLOCK))

    def keep(self) -> None:
        """Adds the record of the finished run to the archive, atomically.

        Raises:
          RunDirectoryError: If the run lacks a file that the record needs.
        """
        grid = self.grid
        record = record_of(
            self.workdir, self.cell, self.seed, self.overrides, grid.kept, grid.curves
        )
        try:
            for name in grid.shared:
                with replacing(self.shared(name)) as temporary:
                    shutil.copyfile(self.workdir / name, temporary)
            archive.add(self.records, [record])
        except OSError as error:
            raise RunDirectoryError(f"{self.records} cannot be made: {error}") from None

    def status(self) -> str:
        """Returns the state of the run: not started, started, trained or finished."""
        if self.is_finished():
            changes = self.changes()
            return f"finished, with {changes}" if changes else "finished"
        directory = RunDirectory(self.workdir)
        if (read_json(directory.run) or {}).get("finished"):
            return "trained"
        return "started" if directory.config.exists() else "not started"

    def record(self) -> Record:
        """Returns the record, without arrays and lines.

        Raises:
          RunDirectoryError: If there is none.
        """
        return self._records().outline((self.cell, self.seed))

    def results(self) -> Mapping[str, Mapping[str, float]]:
        """Returns the metrics of each split, from the record."""
        return self.record().results

    def scores(self) -> Mapping[str, float]:
        """Returns the metrics of the test split, from the record.

        Raises:
          RunDirectoryError: If it has none.
        """
        results = self.results()
        if "test" not in results:
            raise RunDirectoryError(
                f"{self.records}: expected results of the test split for {self.name}, found "
                f"{', '.join(results) or 'none'}"
            )
        return results["test"]

    def facts(self) -> Mapping[str, Any]:
        """Returns command, versions, hardware and so on of the run, from the record."""
        return self.record().facts

    def arrays(self, file: str) -> Mapping[str, np.ndarray]:
        """Returns the arrays of a file that the run has left, from the record.

        Raises:
          RunDirectoryError: If the record has none.
        """
        return self._kept(self._records().arrays((self.cell, self.seed)), file)

    def lines(self, file: str) -> Sequence[str]:
        """Returns the lines of a text that the run has left, from the record; as for `arrays`."""
        return self._kept(self._records().lines((self.cell, self.seed)), file)

    def _records(self) -> archive.Archive:
        records = archive.load(self.records)
        if (self.cell, self.seed) not in records:
            raise RunDirectoryError(f"{self.records}: expected a record of {self.name}, found none")
        return records

    def _kept(self, files: Mapping[str, Any], file: str) -> Any:
        if file not in files:
            raise RunDirectoryError(
                f"{self.records}: expected {file} of {self.name}, found "
                f"{', '.join(files) or 'nothing'}"
            )
        return files[file]


def _override(values: ConfigDict, path: str, value: Any) -> None:
    *groups, field = path.split(".")
    try:
        for group in groups:
            values = values[group]
        if field not in values:
            raise KeyError
        values[field] = value
    except (KeyError, TypeError, AttributeError):
        raise ConfigError(f"config.{path}: {value!r} does not fit the config") from None


def _text(value: Any) -> str:
    """Formats a value for a command-line flag."""
    return value if isinstance(value, str) else json.dumps(value)
