"""Where metrics go besides `metrics.jsonl`, one file each; a file's name is its name in configs.

A file defines `PACKAGE`, what has to be installed for it, and `open_writer(opening) -> Writer`. The
package is imported when such a writer is asked for, and not before.
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
    """What a writer is told when it is opened.

    Attributes:
      directory: The run's directory.
      config: The run's config, as `config.json` holds it.
      step: Updates made so far.
      run_id: What the service called this run when training began, or None if it begins now.
    """

    directory: pathlib.Path
    config: Mapping[str, Any]
    step: int = 0
    run_id: str | None = None


@runtime_checkable
class Writer(Protocol):
    """What takes metrics over time.

    Attributes:
      run_id: What the service calls the run, by which it is continued.
      place: Where people find it.
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
    """Checks that what some writers need is installed.

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
