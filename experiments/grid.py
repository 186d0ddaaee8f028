"""An experiment is a grid: cells, each a few config overrides, times seeds.

Every run of it is a directory of `launch.train`, `RUNS/EXPERIMENT/CELL/seedK`. What the tables need
of a finished run is copied to its record, `OUT/EXPERIMENT/runs/CELL/seedK`. Records are committed:
tables are made of them alone, and a run that has one is finished, wherever it was trained.
"""

import dataclasses
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from attention_jax.commands import additions, cli
from attention_jax.errors import ConfigError, RunDirectoryError
from attention_jax.training.config import changed_fields, from_config_dict, template, to_plain
from attention_jax.training.files import replacing
from attention_jax.training.run_directory import RunDirectory, read_json, writing

RECORD = ("config.json", "run.json", "results.json")
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
      kept: Files that a record has beside `RECORD`.
      shared: Files that are the same in all runs, kept once beside the records.
    """

    name: str
    config: str | Mapping[str, str]
    cells: Mapping[str, Mapping[str, Any]]
    seeds: Sequence[int]
    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    after: Sequence[str] = ()
    kept: Sequence[str] = ()
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
                record=out / self.name / "runs" / cell / f"seed{seed}",
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
      record: Where its results are kept.
    """

    grid: Grid
    cell: str
    seed: int
    workdir: Path
    record: Path

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
        names = {
            f"config.{path.removesuffix('.name')}": value
            for path, value in self.overrides.items()
            if path.endswith(".name")
        }
        config = additions.with_groups(cli.load_config(self.config), self.overrides.items())
        config = additions.with_additions(config, self.overrides)
        values = template(config.to_dict(), names)
        for path, value in self.overrides.items():
            _override(values, path, value)
        return to_plain(from_config_dict(values.to_dict()))

    def is_finished(self) -> bool:
        """Returns whether the run has a record.

        Raises:
          RunDirectoryError: If the record is of another config than the grid now has.
        """
        config = read_json(self.record / "config.json")
        if config is None:
            return False
        changed = changed_fields(to_plain(from_config_dict(config)), self.resolved())
        if changed:
            differences = (f"{path} {old!r}, now {new!r}" for path, (old, new) in changed.items())
            raise RunDirectoryError(
                f"{self.record}: made with another config ({'; '.join(differences)}); "
                "remove it to run again"
            )
        return True

    def shared(self, name: str) -> Path:
        """Returns where a file that all runs share is kept."""
        return self.record.parents[2] / name

    def require_room(self) -> None:
        """Makes the folders of the experiment, and makes sure that files can be written there.

        Raises:
          RunDirectoryError: If they cannot.
        """
        for folder in (self.workdir.parents[1], self.record.parents[2]):
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder) as file:
                    file.write(bytes(_BLOCK))

    def keep(self) -> None:
        """Makes the record, whole or not at all.

        Raises:
          RunDirectoryError: If the run has not left what belongs into it.
        """
        unfinished = self.record.with_name(f".{self.record.name}.{os.getpid()}")
        try:
            unfinished.mkdir(parents=True)
            for name in (*RECORD, *self.grid.kept):
                shutil.copyfile(self.workdir / name, unfinished / name)
            for name in self.grid.shared:
                with replacing(self.shared(name)) as temporary:
                    shutil.copyfile(self.workdir / name, temporary)
            unfinished.rename(self.record)
        except OSError as error:
            raise RunDirectoryError(f"{self.record} cannot be made: {error}") from None
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def status(self) -> str:
        """Returns in a word how far the run is."""
        if self.is_finished():
            return "finished"
        directory = RunDirectory(self.workdir)
        if (read_json(directory.run) or {}).get("finished"):
            return "trained"
        return "started" if directory.config.exists() else "not started"

    def results(self) -> dict[str, dict[str, float]]:
        """Returns the metrics of each split, from the record."""
        return self._read("results.json")

    def scores(self) -> dict[str, float]:
        """Returns the metrics of the test split, from the record.

        Raises:
          RunDirectoryError: If it has none.
        """
        results = self.results()
        if "test" not in results:
            raise RunDirectoryError(
                f"{self.record / 'results.json'}: expected results of the test split, found "
                f"{', '.join(results) or 'none'}"
            )
        return results["test"]

    def facts(self) -> dict[str, Any]:
        """Returns how the run was made, from the record."""
        return self._read("run.json")

    def _read(self, name: str) -> Any:
        found = read_json(self.record / name)
        if found is None:
            raise RunDirectoryError(f"{self.record}: expected a record, found no {name} in it")
        return found


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
