"""Identity of a run in its checkpoints: the config, and hashes of what it was trained on."""

from collections.abc import Mapping
from typing import Any

from attention_jax.errors import CheckpointError
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.runs.checkpoints.reading import Checkpoint
from attention_jax.runs.config import (
    ExperimentConfig,
    changed_fields,
    from_config_dict,
    may_change,
    to_plain,
)
from attention_jax.runs.hashes import hash_files
from attention_jax.runs.named_files import RECORD, named_files, recorded_hashes
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.runs.run_inputs import LINKS, TEXTS, VOCABULARIES, check_vocabularies

_HASHES = (TEXTS, VOCABULARIES, LINKS, RECORD)


def origin(
    config: ExperimentConfig, directory: RunDirectory, hashes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns what checkpoints record of their run, as plain JSON: its config and hashes.

    Args:
      config: The run's config.
      directory: The run's directory.
      hashes: Hashes of what the training reads; see `hashes_of_inputs`.
    """
    return {
        **to_plain(config),
        VOCABULARIES: hash_files(directory.vocabularies),
        RECORD: recorded_hashes(directory),
        **(hashes or {}),
    }


def known_inputs(checkpoint: Checkpoint) -> dict[str, Any]:
    """Returns the hashes of a checkpoint's training data; earlier versions recorded only some."""
    # They lie beside the config's own groups, in the same JSON object.
    return {name: checkpoint.config[name] for name in _HASHES if name in checkpoint.config}


def check_origin(
    checkpointer: Checkpointer,
    checkpoint: Checkpoint,
    config: ExperimentConfig,
    directory: RunDirectory,
) -> None:
    """Checks that a checkpoint was made by the run in whose directory it lies.

    Fields that may change when a run is resumed may differ, and so may the paths of files.

    Raises:
      CheckpointError: Naming the first field that differs, or the vocabularies.
    """
    saved = {name: value for name, value in checkpoint.config.items() if name not in _HASHES}
    where = f"{checkpointer.directory / str(checkpoint.step)}"
    # Read as a config, so that renamed fields and new defaults make no difference.
    before, files = from_config_dict(saved), named_files(config)
    files = files.keys() & named_files(before).keys()
    for path, (old, new) in changed_fields(to_plain(before), to_plain(config)).items():
        if not (may_change(path) or path in files):
            raise CheckpointError(
                f"{where} is of another run: {path} was {old!r}, here it is {new!r}"
            )
    check_vocabularies(checkpoint.config.get(VOCABULARIES), directory, where)
