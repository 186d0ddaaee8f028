"""The files that a config names, identified by a hash of their content where they have moved.

A config keeps the paths as they were given. In addition, `run.json` records where each file was
found and a hash of its content. A run can so be used from another working directory, and a text be
given by a new path after it was moved or copied: the same content is the same file.
"""

import dataclasses
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from attention_jax.errors import DataError
from attention_jax.runs.config import ExperimentConfig
from attention_jax.runs.hashes import hash_any
from attention_jax.runs.run_directory import RunDirectory, read_json
from attention_jax.runs.run_inputs import TEXTS, recorded_inputs

RECORD = "files"
# Their content is copied into the run directory or its checkpoints; a run that has begun does not
# read them again.
_KEPT = (
    "data.vocabularies", "data.alignment.file", "data.lexicon.file", "training.initial_weights"
)  # fmt: skip


def named_files(config: ExperimentConfig) -> dict[str, str]:
    """Lists the files and folders that a config names, by the path of the field."""
    return dict(_named(config, ""))


def texts(config: ExperimentConfig) -> dict[str, str]:
    """Lists the named files that are read whenever the data is loaded: the user's own texts."""
    return {
        field: path
        for field, path in named_files(config).items()
        if field.startswith("data.") and field not in _KEPT
    }


def with_files(config: ExperimentConfig, files: Mapping[str, str]) -> ExperimentConfig:
    """Returns a config with other paths in these fields."""
    for field, path in files.items():
        config = _replaced(config, field.split("."), path)
    return config


@dataclasses.dataclass(frozen=True)
class Moved:
    """New places of files that are not where a run's config says; callable on a config.

    Attributes:
      fields: The new path by the field of one run's config.
      paths: The new path by the old, absolute path, whichever run names it.
    """

    fields: Mapping[str, str] = dataclasses.field(default_factory=dict)
    paths: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def between(cls, old: ExperimentConfig, new: ExperimentConfig) -> "Moved":
        """Compares two configs of one run: the files whose paths differ, by their old paths."""
        now = named_files(new)
        return cls(paths={
            str(pathlib.Path(path).absolute()): now[field]
            for field, path in named_files(old).items()
            if now.get(field, path) != path
        })  # fmt: skip

    def __call__(self, config: ExperimentConfig) -> ExperimentConfig:
        """Returns the config with the new paths."""
        by_path = {
            field: self.paths.get(str(pathlib.Path(path).absolute()), path)
            for field, path in named_files(config).items()
        }
        return with_files(config, {**by_path, **self.fields})


def located(config: ExperimentConfig, directory: RunDirectory) -> ExperimentConfig:
    """Resolves the paths of a config's files to where the files are now.

    A file is where the config says, unless nothing is there, or something with other content, and
    the known file is still where the run found it before. This happens if the path is relative and
    the program is started from another directory. A path that is not the one in the run's own
    config was given anew and means what it says: another text must not pass for the known one.
    """
    known, before = _known(directory), directory.read_config()
    found = {
        field: _place(path, known.get(field))
        for field, path in named_files(config).items()
        if _recorded_path(before, field) in (None, path)
    }
    return with_files(config, found)


def check_texts_are_there(config: ExperimentConfig, where: str) -> None:
    """Checks that the user's texts exist; the error tells how to give their new place.

    Args:
      config: The run's config, resolved by `located`.
      where: Beginning of the command-line option that names a field, such as `--config.`.

    Raises:
      DataError: Naming the first such text.
    """
    for field, path in texts(config).items():
        if not os.path.exists(path):
            raise DataError(
                f"{path}: expected the text of {field}, found no file; if it has moved, "
                f"{where}{field}= names its new place"
            )


def check_moved(directory: RunDirectory, field: str, path: str) -> str | None:
    """Returns why a run cannot continue with a file at another path, or None if it can.

    Texts are compared later, when they are read. The content of other files must be the same.
    """
    known, found = _known(directory).get(field), hash_any(pathlib.Path(path))
    if field.startswith("data.") and field not in _KEPT:
        return None if recorded_inputs(directory)[TEXTS] else ""
    if known is None:
        return ""
    if found is None:
        return " where no file is"
    return None if found == known["sha256"] else " which has another content"


def has_changed(directory: RunDirectory, config: ExperimentConfig, field: str) -> bool:
    """Whether a named file has other content than the one that the run recorded."""
    known, path = _known(directory).get(field), named_files(located(config, directory))[field]
    return known is not None and hash_any(pathlib.Path(path)) != known["sha256"]


def check_beginning(directory: RunDirectory, config: ExperimentConfig) -> None:
    """Checks that a run which starts anew, for want of a checkpoint, starts with the same files.

    Raises:
      DataError: Naming the first one with another content.
    """
    for field, path in named_files(config).items():
        known = _known(directory).get(field)
        if known and field in _KEPT and hash_any(pathlib.Path(path)) != known["sha256"]:
            raise DataError(
                f"config.{field}: expected the content that {directory.path} began with, found "
                f"another in {path}; bring it back, or train in a new directory"
            )


def record_files(directory: RunDirectory, config: ExperimentConfig) -> None:
    """Writes the places and hashes of a run's files into `run.json`.

    Files that were copied into the run keep their first record: they may be gone by now, or hold
    something else. A test text may be replaced by another.

    Args:
      directory: The run.
      config: Its config, resolved by `located`.
    """
    if not directory.writes:
        return
    known = _known(directory)
    for field, path in named_files(config).items():
        before, found = known.get(field), hash_any(pathlib.Path(path))
        is_same = before is None or before["sha256"] == found or field not in _KEPT
        if found is not None and is_same:
            known[field] = {"path": str(pathlib.Path(path).absolute()), "sha256": found}
    if known:
        directory.add_to_run(**{RECORD: known})


def recorded_hashes(directory: RunDirectory) -> dict[str, str]:
    """Returns the hashes of the files that a run began with, by the fields that name them."""
    return {field: known["sha256"] for field, known in _known(directory).items()}


def _known(directory: RunDirectory) -> dict[str, Mapping[str, str]]:
    return dict((read_json(directory.run) or {}).get(RECORD, {}))


def _recorded_path(config: Any, field: str) -> Any:
    """Returns the path in a recorded config; None where it has no such field."""
    for name in field.split("."):
        config = config.get(name) if isinstance(config, Mapping) else None
    return config


def _place(path: str, known: Mapping[str, str] | None) -> str:
    if known is None or path == known["path"]:
        return path
    # Hashing reads whole files, so it comes last, after all that the paths alone can settle.
    here, there = pathlib.Path(path), pathlib.Path(known["path"])
    if not os.path.exists(there) or (os.path.exists(here) and here.samefile(there)):
        return path
    if not os.path.exists(here):
        return str(there)
    is_other = hash_any(here) != known["sha256"]
    return str(there) if is_other and hash_any(there) == known["sha256"] else path


def _named(config: Any, where: str) -> Iterator[tuple[str, str]]:
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.metadata.get("is_file") and value:
            yield f"{where}{field.name}", value
        elif dataclasses.is_dataclass(value):
            yield from _named(value, f"{where}{field.name}.")
        elif isinstance(value, Mapping):  # of parts by their names
            for name, part in value.items():
                if dataclasses.is_dataclass(part):
                    yield from _named(part, f"{where}{field.name}.{name}.")


def _replaced(config: Any, names: list[str], value: str) -> Any:
    name, *below = names
    is_group = isinstance(config, Mapping)
    old = config[name] if is_group else getattr(config, name)
    new = _replaced(old, below, value) if below else value
    if new == old:
        return config
    if is_group:
        return type(config)({**config, name: new})
    return dataclasses.replace(config, **{name: new})
