"""Pruning: a finished run keeps the parameters that are evaluated, and gives its checkpoints up.

They are in `weights.safetensors`, bit by bit; checkpoints are some three times as large each, for
they hold the optimiser's state. A pruned run translates, scores and is evaluated as before, but
cannot be continued. The file is there, whole and read again, before the first checkpoint goes:
wherever pruning is cut off, the run is as it was or is pruned, and the same call does the rest.
"""

import dataclasses
import json
import os
import shutil
from collections.abc import Mapping

import jax
import numpy as np

from attention_jax.data.lexicon import LEXICON_FILE
from attention_jax.errors import CheckpointError, RunDirectoryError
from attention_jax.runs.checkpoints.weights import IDS, load_weights, metadata_of, save_weights
from attention_jax.runs.hashes import hash_files
from attention_jax.runs.run_directory import RunDirectory, read_json, writing
from attention_jax.types import Params

_STEP, _TEXTS = "step", "texts"


@dataclasses.dataclass(frozen=True)
class Kept:
    """What a pruned run is loaded from.

    Attributes:
      params: The parameters, on the host.
      step: The update after which they were saved.
      texts: Hashes of the texts that it was trained on, by split, if they are known.
    """

    params: Params
    step: int
    texts: Mapping[str, str] | None


def prune(directory: RunDirectory, kept: Kept) -> int:
    """Prunes a finished run.

    Args:
      directory: The run's.
      kept: What it is evaluated with, as it was loaded.

    Returns:
      The bytes that were freed, less those of the file that was written.

    Raises:
      RunDirectoryError: If it is not finished, is being trained, or cannot be written.
      CheckpointError: If the file cannot be read again as it was written.
    """
    with directory.claimed():
        if not (read_json(directory.run) or {}).get("finished"):
            raise RunDirectoryError(
                f"{directory.path}: expected a finished run, found one whose training or "
                "evaluation would go on"
            )
        before = _bytes_in(directory)
        if not directory.is_pruned:
            _keep(directory, kept)
        if directory.checkpoints.exists():
            with writing(directory.checkpoints):
                shutil.rmtree(directory.checkpoints)
        return before - _bytes_in(directory)


def read_kept(directory: RunDirectory, like: Params) -> Kept:
    """Reads what a pruned run has kept.

    Args:
      directory: The run's.
      like: The shapes of its model's parameters.

    Raises:
      UserError: If the file is damaged or of another model.
      CheckpointError: If its vocabularies are not those of the run.
    """
    params, known = load_weights(directory.weights, like), metadata_of(directory.weights)
    if known.get("vocabularies") != hash_files(directory.vocabularies):
        raise CheckpointError(
            f"{directory.weights}: expected parameters for the vocabularies in "
            f"{directory.vocabularies}, found those of others"
        )
    return Kept(params, int(known[_STEP]), json.loads(known[_TEXTS]))


def refuse_to_continue(directory: RunDirectory) -> None:
    """Raises RunDirectoryError of a pruned run, whose training cannot go on."""
    if directory.is_pruned:
        # Most data sets make the vocabularies that they always make, and have no such field.
        has_field = "vocabularies" in directory.read_config().get("data", {})
        same = f" --config.data.vocabularies={directory.vocabularies}" if has_field else ""
        raise RunDirectoryError(
            f"{directory.path}: expected checkpoints to continue from, found a pruned run; a new "
            f"--workdir starts from its parameters with --config.training.initial_weights="
            f"{directory.weights}{same}"
        )


def _keep(directory: RunDirectory, kept: Kept) -> None:
    """Writes the file and reads it again; it is not there unless it is good."""
    written = directory.weights.with_name(f".unchecked.{directory.weights.name}")
    about = {_STEP: str(kept.step), _TEXTS: json.dumps(kept.texts)}
    about[IDS] = hash_files(directory.vocabularies, LEXICON_FILE)
    vocabularies = hash_files(directory.vocabularies)
    with writing(directory.weights):
        try:
            save_weights(kept.params, written, directory.read_config(), vocabularies, about)
            found = jax.tree.leaves(load_weights(written, kept.params))
            wanted = jax.tree.leaves(kept.params)
            if not all(np.array_equal(*pair) for pair in zip(found, wanted, strict=True)):
                raise CheckpointError(f"{written}: not read again as it was written")
            with written.open("rb") as file:  # on the disk before the checkpoints are not
                os.fsync(file.fileno())
            os.replace(written, directory.weights)
        finally:
            written.unlink(missing_ok=True)


def _bytes_in(directory: RunDirectory) -> int:
    files = [*directory.checkpoints.rglob("*"), directory.weights]
    return sum(file.stat().st_size for file in files if file.is_file())
