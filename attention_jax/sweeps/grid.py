"""Grid of runs: cells, each a few overrides of a config, times seeds.

Every run is a run directory of `launch.train`, `RUNS/NAME/CELL/seedK`. Tables are made from records
alone, which are found by cell and seed in `OUT/NAME/records.zip`: a run that has one is finished,
wherever it was trained. Those of experiments are committed, and stay whatever their configs would
be today.
"""

import dataclasses
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.config_choices import Choices
from attention_jax.errors import RunDirectoryError
from attention_jax.host import program_names
from attention_jax.runs.config import (
    ExperimentConfig,
    changed_fields,
    from_config_dict,
    present_path,
    template,
    to_plain,
)
from attention_jax.runs.config_file import load_config
from attention_jax.runs.files import replacing
from attention_jax.runs.overrides import overridden
from attention_jax.runs.run_directory import RunDirectory, as_file_name, read_json, writing
from attention_jax.runs.size_of_text import USUAL, settled
from attention_jax.sweeps import archive
from attention_jax.sweeps.archive import Record
from attention_jax.sweeps.records import Kept, record_of

_BLOCK = 4096  # bytes that a full disk has no room for, although it can still make empty files


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grid:
    """Runs that differ in a few fields of their configs.

    Attributes:
      name: Name of the experiment or sweep, and of its directories.
      config: Config file that all runs share, with its argument, or one for each cell.
      cells: The overrides of each cell by its name, path -> value, or the value as it is typed.
      seeds: Values of `config.seed`, in which the runs of a cell differ.
      overrides: Overrides of all cells.
      after: Modules to run after training: `python -m MODULE --workdir=RUN`.
      evaluate: Options of `launch.evaluate`, which is run after training; empty for not at all.
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
    evaluate: Sequence[str] = ()
    kept: Kept = dataclasses.field(default_factory=dict)
    curves: Sequence[str] = ()
    shared: Sequence[str] = ()

    def runs(self, runs: Path, out: Path) -> list["GridRun"]:
        """Lists the runs, seed by seed: the first ones already compare all cells.

        Args:
          runs: Where experiments train.
          out: Where experiments keep records and tables.
        """
        return [self.run(cell, seed, runs, out) for seed in self.seeds for cell in self.cells]

    def run(self, cell: str, seed: int, runs: Path, out: Path) -> "GridRun":
        """Returns one run; the folders are those of `runs`."""
        return GridRun(
            grid=self,
            cell=cell,
            seed=seed,
            workdir=runs / self.name / as_file_name(cell) / f"seed{seed}",
            records=out / self.name / archive.FILE,
        )


@dataclasses.dataclass(frozen=True)
class GridRun:
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
        """Log of its programs, in the folder that launchers have for logs."""
        return RunDirectory(self.workdir).logs / "run.log"

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
        config, workdir = f"--config={self.config}", f"--workdir={self.workdir}"
        overrides = [f"--config.{path}={text}" for path, text in self.texts()]
        train = [*program_names.program("train"), config, workdir, *overrides]
        evaluate = [*program_names.program("evaluate"), workdir, *self.grid.evaluate]
        others = [["-m", module, workdir] for module in self.grid.after]
        return [train, *([evaluate] if self.grid.evaluate else []), *others]

    def commands(self) -> list[list[str]]:
        """Returns the commands of the run, with this Python; no training of a finished one."""
        arguments = self.arguments()[1:] if self.is_finished() else self.arguments()
        return [[sys.executable, *each] for each in arguments]

    def texts(self) -> list[tuple[str, str]]:
        """Returns all overrides as (path, text), as a command line has them."""
        return [(path, _text(value)) for path, value in self.overrides.items()]

    def experiment(self, known: Mapping[str, Any] | None = None) -> ExperimentConfig:
        """Returns the whole config, checked, as `launch.train` will read it.

        Args:
          known: The config that the run was made with, for fields that are left to the size of a
            text.

        Raises:
          ConfigError: If an override does not fit the config.
        """
        values = template(load_config(self.config), Choices(self.texts()))
        values = overridden(values, "config", self.texts())
        return from_config_dict(settled(values, lambda line: None, USUAL, known))

    def resolved(self) -> dict[str, Any]:
        """Returns the whole config, as the run's `config.json` will hold it.

        Raises:
          ConfigError: If an override does not fit the config.
        """
        return to_plain(self.experiment())

    def is_finished(self) -> bool:
        """Returns whether the run has a record.

        Raises:
          RunDirectoryError: If the records cannot be read.
        """
        return (self.cell, self.seed) in archive.load(self.records)

    def is_evaluated(self) -> bool:
        """Returns whether the run has a record, of an evaluation with the options of its grid.

        Raises:
          RunDirectoryError: If the records cannot be read.
        """
        asked = list(self.grid.evaluate)
        if not asked or not self.is_finished():
            return self.is_finished()
        made = [each.get("command", "") for each in self.facts().get("evaluations", {}).values()]
        return any(shlex.split(command)[-len(asked) :] == asked for command in made)

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

    def keeps(self, file: str) -> bool:
        """Returns whether the record has arrays of a file, which one of earlier times may lack."""
        return file in self._records().arrays((self.cell, self.seed))

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


def _text(value: Any) -> str:
    """Formats a value for a command-line flag."""
    return value if isinstance(value, str) else "None" if value is None else json.dumps(value)
