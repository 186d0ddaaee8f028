"""The texts of a run are those that it began with, or it says so.

Files of a user's own change, and with them what is held out: pairs that a run was trained on could
be validated or tested on.
"""

from collections.abc import Mapping

from attention_jax.data.tasks import Task
from attention_jax.errors import DataError
from attention_jax.training.run_directory import RunDirectory, read_json

# A run may be tested on other texts than when it was trained.
_LASTING = ("train", "validation")


def record_texts(directory: RunDirectory, task: Task) -> None:
    """Writes into `run.json` what the texts are known again by."""
    directory.add_to_run(data=task.fingerprint, texts=task.fingerprints)


def check_texts(directory: RunDirectory, task: Task) -> None:
    """Compares the texts with those that a run began with, if it has begun.

    Raises:
      DataError: If texts that it was trained on, or validated with, are others now.
    """
    recorded = (read_json(directory.run) or {}).get("texts")
    if not isinstance(recorded, Mapping):  # a new run, or one of an earlier version
        return
    changed = [name for name in _LASTING if recorded.get(name) != task.fingerprints.get(name)]
    if changed:
        raise DataError(
            f"{directory.path}: expected the texts that this run began with, found others for "
            f"{' and '.join(changed)}; bring them back, or train in a new directory"
        )
