"""Experiment trackers: where metrics go besides `metrics.jsonl`, one file each.

A file's name is its name in configs. It defines `PACKAGE`, the package that has to be installed for
it, and `open_writer(opening) -> Writer`. The package is imported only when the writer is opened.
"""

import dataclasses
import importlib
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from attention_jax.discovery import Parts
from attention_jax.errors import ConfigError

FINISHED, INTERRUPTED, FAILED = "finished", "interrupted", "failed"


@dataclasses.dataclass(frozen=True)
class Opening:
    """The run that a writer is opened for.

    Attributes:
      directory: The run's directory.
      config: The run's config, as `config.json` holds it.
      step: Updates made so far.
      run_id: The service's id of this run if it was opened before, else None.
    """

    directory: pathlib.Path
    config: Mapping[str, Any]
    step: int = 0
    run_id: str | None = None


@runtime_checkable
class Writer(Protocol):
    """The protocol of an experiment tracker: takes metrics over time.

    Attributes:
      run_id: The service's id of the run, by which a resumed training continues it.
      place: Where people find the metrics: an address or a directory.
    """

    run_id: str
    place: str

    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        """Takes finite numbers by name, measured after `step` updates."""
        ...

    def close(self, ending: str) -> None:
        """Ends writing; `ending` says how training did: finished, interrupted or failed."""
        ...


WRITERS = Parts("attention_jax.runs.writers", defines="open_writer")


def require_packages(names: Iterable[str]) -> None:
    """Checks that the packages of some writers are installed.

    Raises:
      ConfigError: If it is not, or cannot be imported.
    """
    for name in names:
        package = WRITERS.find(name).PACKAGE
        try:
            found = importlib.import_module(package)
            reason = "none"
        except ImportError as error:
            found, reason = None, " ".join(str(error).split())
        # A directory of that name, such as the one in which wandb keeps its files, can be imported.
        if getattr(found, "__file__", None) is None:
            raise ConfigError(
                f"config.training.writers: expected the package {package} to be installed for "
                f"{name!r} (pip install {package}), found {reason}"
            )
