"""Data versioning: a run refuses inputs that are not those it began with.

If a user's own text changes, so does the split into training and held-out pairs, and a resumed run
could be tested on pairs that it was trained on. Files of the run can be damaged and yet readable.
The run directory and every checkpoint therefore hold hashes of texts, vocabularies and links.
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
    """Hashes the inputs of a training: texts, vocabularies and word links."""
    return {
        TEXTS: task.fingerprints,
        VOCABULARIES: hash_files(directory.vocabularies),
        LINKS: hash_any(directory.links),
    }


def record_inputs(directory: RunDirectory, task: TaskData) -> None:
    """Writes the hashes of a run's inputs into `run.json`."""
    hashes = hashes_of_inputs(directory, task)
    directory.add_to_run(**{
        _DATA: task.fingerprint,
        TEXTS: hashes.pop(TEXTS),
        _HASHES: {name: known for name, known in hashes.items() if known},
    })  # fmt: skip


def recorded_inputs(directory: RunDirectory) -> dict[str, Any]:
    """Reads the hashes from `run.json`: none in a new run, only some from earlier versions."""
    record = read_json(directory.run) or {}
    return {TEXTS: record.get(TEXTS), **record.get(_HASHES, {})}


def check_inputs(
    known: Mapping[str, Any], directory: RunDirectory, task: TaskData, config: DataConfig
) -> None:
    """Compares the inputs of a training with recorded hashes.

    Args:
      known: Hashes as from `hashes_of_inputs`; inputs without one are not compared.
      directory: The run.
      task: The texts.
      config: The data config of the task.

    Raises:
      DataError: If texts, vocabularies or links have changed.
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

    The test text may be replaced by another if the config names its file.

    Args:
      known: A hash for every split; None for runs of earlier versions, which recorded none.
      directory: The run.
      task: The texts.
      config: The data config of the task.

    Raises:
      DataError: If the training or validation texts have changed.
    """
    if not isinstance(known, Mapping):
        return
    # A test split that is cut from the training text must last as well: it is held out of it.
    lasting = ["train", "validation"]
    if not any(getattr(config, "files", lambda split: ())("test")):
        lasting.append("test")
    changed = [
        # A split that is not there at all is not evaluated either.
        name for name in lasting
        if name in task.splits and known.get(name) not in (None, task.fingerprints[name])
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
