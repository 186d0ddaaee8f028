"""Which run a checkpoint belongs to: its config and its vocabularies."""

import hashlib
import pathlib
from typing import Any

from attention_jax.errors import CheckpointError
from attention_jax.training.checkpoints.checkpoint import Checkpoint, Checkpointer
from attention_jax.training.config import (
    ExperimentConfig,
    changed_fields,
    from_config_dict,
    may_change,
    to_plain,
)
from attention_jax.training.run_directory import RunDirectory

_VOCABULARIES = "vocabularies"


def origin(config: ExperimentConfig, directory: RunDirectory) -> dict[str, Any]:
    """Returns what a checkpoint of a run says of where it comes from, as plain JSON."""
    return {**to_plain(config), _VOCABULARIES: hash_files(directory.vocabularies)}


def check_origin(
    checkpointer: Checkpointer,
    checkpoint: Checkpoint,
    config: ExperimentConfig,
    directory: RunDirectory,
) -> None:
    """Checks that a checkpoint was made by the run in whose directory it is.

    Fields that a run may be continued with are allowed to differ.

    Raises:
      CheckpointError: Naming the first other field, or the vocabularies.
    """
    saved = dict(checkpoint.config)
    where = f"{checkpointer.directory / str(checkpoint.step)}"
    vocabularies = saved.pop(_VOCABULARIES, None)
    changed = changed_fields(to_plain(from_config_dict(saved)), to_plain(config))
    for path, (before, after) in changed.items():
        if not may_change(path):
            raise CheckpointError(
                f"{where} is of another run: {path} was {before!r}, here it is {after!r}"
            )
    if vocabularies not in (None, hash_files(directory.vocabularies)):
        raise CheckpointError(
            f"{where} was trained with other vocabularies than those in {directory.vocabularies}"
        )


def hash_files(folder: pathlib.Path) -> str:
    """Returns a hash of the names and contents of all files of a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder)}\0{content}\0".encode())
    return digest.hexdigest()
