"""An experiment is a grid: cells, each a few config overrides, times seeds.

Every run of it is a directory of `launch.train`, `RUNS/EXPERIMENT/CELL/seedK`. What the tables need
of a finished run is its record, found by cell and seed in `OUT/EXPERIMENT/records.zip`. Records are
committed: tables are made of them alone, and a run that has one is finished, wherever it was
trained and whatever its config would be today.
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

_BLOCK = 4096  # bytes, which a full disk has no room for
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
      name: Of the experiment, and of its directories.
      config: Config file that all runs share, with its argument, or one for each cell.
      cells: The overrides of each cell by its name, as path -> value.
      seeds: The runs of a cell differ in `config.seed`.
      overrides: Overrides of all cells.
      after: Modules that go on where training ends: `python -m MODULE --workdir=RUN`.
      kept: Arrays and lines of text that a record has, as `record_of` has them.
      curves: Metrics whose course while training a record has.
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
        """Returns the runs seed by seed, so that the first ones already compare all cells.

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
      grid: What it belongs to.
      cell: Its cell.
      seed: Its seed.
      workdir: Where it trains.
      records: The archive that its record is kept in, with those of the others.
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
        """What its programs print; beside the directory, which they want for themselves."""
        return self.workdir.with_name(f"{self.workdir.name}.log")

    @property
    def config(self) -> str:
        """Its config file, with its argument."""
        config = self.grid.config
        return config if isinstance(config, str) else config[self.cell]

    @property
    def overrides(self) -> dict[str, Any]:
        """All overrides, later ones before earlier ones."""
        return {**self.grid.overrides, **self.grid.cells[self.cell], "seed": self.seed}

    def arguments(self) -> list[list[str]]:
        """Returns what follows `python` in the commands of the run, in their order."""
        overrides = [f"--config.{path}={_text(value)}" for path, value in self.overrides.items()]
        config, workdir = f"--config={self.config}", f"--workdir={self.workdir}"
        train = ["-m", "launch.train", config, workdir, *overrides]
        return [train, *(["-m", module, workdir] for module in self.grid.after)]

    def commands(self) -> list[list[str]]:
        """Returns the commands themselves."""
        return [[sys.executable, *arguments] for arguments in self.arguments()]

    def resolved(self) -> dict[str, Any]:
        """Returns the whole config, as the run's `config.json` will hold it.

        Raises:
          ConfigError: If an override does not fit the config.
        """
        values = template(cli.load_config(self.config), Choices(self.overrides.items()))
        for path, value in self.overrides.items():
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
        """Returns how the overrides of the run differ from those that its record was made with."""
        before = {present_path(path): value for path, value in self.record().overrides.items()}
        changed = changed_fields(before, json.loads(json.dumps(self.overrides)))
        return "; ".join(f"{path} {old!r}, now {new!r}" for path, (old, new) in changed.items())

    def shared(self, name: str) -> Path:
        """Returns where a file that all runs share is kept."""
        return self.records.with_name(name)

    def require_room(self) -> None:
        """Makes the folders of the experiment, and makes sure that files can be written there.

        Raises:
          RunDirectoryError: If they cannot.
        """
        for folder in (self.workdir.parents[1], self.records.parent):
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder) as file:
                    file.write(bytes(_BLOCK))

    def keep(self) -> None:
        """Makes the record, whole or not at all.

        Raises:
          RunDirectoryError: If the run has not left what belongs into it.
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
        """Returns in a word how far the run is."""
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
        """Returns how the run was made, from the record."""
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
    """Writes a value as flags read it."""
    return value if isinstance(value, str) else json.dumps(value)
