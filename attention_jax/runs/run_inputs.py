"""Data versioning: what a run reads is what it began with, or it says so.

Files of a user's own change, and with them what is held out: pairs that a run was trained on could
be validated or tested on. Files of the run can be damaged without being any less readable. The run
directory and every checkpoint know the hashes of all of them.
"""

from collections.abc import Mapping
from typing import Any

from attention_jax.data.config import DataConfig
from attention_jax.data.loading import TaskData
from attention_jax.data.storage import cache_root
from attention_jax.errors import CheckpointError, DataError
from attention_jax.runs.hashes import hash_any, hash_files
from attention_jax.runs.run_directory import RunDirectory, read_json

TEXTS, VOCABULARIES, LINKS = "texts", "vocabularies", "links"
_DATA, _HASHES = "data", "hashes"


def hashes_of_inputs(directory: RunDirectory, task: TaskData) -> dict[str, Any]:
    """Returns the hashes of what the steps of a training depend on, beside its checkpoints."""
    return {
        TEXTS: task.fingerprints,
        VOCABULARIES: hash_files(directory.vocabularies),
        LINKS: hash_any(directory.links),
    }


def record_inputs(directory: RunDirectory, task: TaskData) -> None:
    """Writes into `run.json` what the inputs of a run are known again by."""
    hashes = hashes_of_inputs(directory, task)
    directory.add_to_run(**{
        _DATA: task.fingerprint,
        TEXTS: hashes.pop(TEXTS),
        _HASHES: {name: known for name, known in hashes.items() if known},
    })  # fmt: skip


def recorded_inputs(directory: RunDirectory) -> dict[str, Any]:
    """Returns the hashes that `run.json` knows: none of a new run, few of an older one."""
    record = read_json(directory.run) or {}
    return {TEXTS: record.get(TEXTS), **record.get(_HASHES, {})}


def check_inputs(
    known: Mapping[str, Any], directory: RunDirectory, task: TaskData, config: DataConfig
) -> None:
    """Compares what a training is about to read with what is known of it.

    Args:
      known: Hashes, as from `hashes_of_inputs`; what is missing is not compared.
      directory: The run.
      task: Its texts.
      config: The task's.

    Raises:
      DataError: If texts, vocabularies or links are others now.
    """
    check_texts(known.get(TEXTS), directory, task, config)
    found = hashes_of_inputs(directory, task)
    for name, what, place, remedy in (
        (VOCABULARIES, "vocabularies", directory.vocabularies, "bring them back"),
        (LINKS, "word links", directory.links,
         "bring them back, or remove the file for them to be found anew"),
    ):  # fmt: skip
        if known.get(name) not in (None, found[name]):
            raise DataError(
                f"{place}: expected the {what} that this run began with, found others; {remedy}"
            )


def check_texts(known: Any, directory: RunDirectory, task: TaskData, config: DataConfig) -> None:
    """Compares the texts of a run with those that it began with.

    It may be tested on other texts than when it was trained, where the config names their files.

    Args:
      known: The hash of every split; of a run of an earlier version, nothing is known.
      directory: The run.
      task: The texts.
      config: The task's.

    Raises:
      DataError: If texts that it was trained on, or validated with, are others now.
    """
    if not isinstance(known, Mapping):
        return
    lasting = ["train", "validation"]
    if not any(getattr(config, "files", lambda split: ())("test")):
        lasting.append("test")
    changed = [
        name for name in lasting if known.get(name) not in (None, task.fingerprints.get(name))
    ]
    if changed:
        raise DataError(
            f"{directory.path}: expected the texts that this run began with, found others for "
            f"{' and '.join(changed)}; bring them back (what was prepared of them is in "
            f"{cache_root() / 'datasets'}), or train in a new directory"
        )


def check_vocabularies(known: Any, directory: RunDirectory, where: str) -> None:
    """Raises `CheckpointError` if a checkpoint was trained with other vocabularies."""
    if known not in (None, hash_files(directory.vocabularies)):
        raise CheckpointError(
            f"{where} was trained with other vocabularies than those in {directory.vocabularies}"
        )
