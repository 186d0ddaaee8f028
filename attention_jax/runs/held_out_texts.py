"""Held-out text kept in the run: what evaluates it when the user's files are gone.

A training copies the splits of the user's own text that it does not train on to `texts/`, one JSON
object a line. A run that was moved to another machine is so evaluated without its training text.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax import json_files
from attention_jax.data.examples import Split, Texts
from attention_jax.data.lexicon import load_resources
from attention_jax.data.loading import TaskData
from attention_jax.data.task import find_task
from attention_jax.data.text.storage import load_vocabularies
from attention_jax.errors import RunDirectoryError
from attention_jax.runs.config import ExperimentConfig
from attention_jax.runs.named_files import texts
from attention_jax.runs.run_directory import RunDirectory

_TRAIN, _SUFFIX = "train", ".jsonl"
_LARGEST = np.iinfo(np.int32).max
_SHAPE = {
    "source": str, "target": str, "references": [str], "number": int, "extras": {str: (str, [int])}
}  # fmt: skip


def keep_held_out(directory: RunDirectory, config: ExperimentConfig, task: TaskData) -> None:
    """Copies the splits that are not trained on into a run, where they are the user's own text.

    Those with values that are neither text nor token ids, such as sound, are not copied.

    Args:
      directory: The run.
      config: Its config; data sets that need no files of the user are not copied.
      task: The data as it is trained on.
    """
    if not texts(config):
        return
    for name, split in task.splits.items():
        if name != _TRAIN and _is_plain(split):
            lines = (json.dumps(row, ensure_ascii=False, default=np.ndarray.tolist)
                     for row in _rows(split))  # fmt: skip
            directory.write_lines(directory.texts / f"{name}{_SUFFIX}", lines)


def held_out_data(directory: RunDirectory, config: ExperimentConfig) -> TaskData | None:
    """Reads the splits that `keep_held_out` copied, with the run's vocabularies.

    Returns:
      The data without its training split, or None if nothing was copied.

    Raises:
      RunDirectoryError: If a copy is damaged.
    """
    paths = sorted(directory.texts.glob(f"*{_SUFFIX}"))
    if not paths:
        return None
    task = find_task(config.data)
    source, target = load_vocabularies(directory.vocabularies)
    resources = load_resources(directory.vocabularies, source, target)
    splits = {
        path.stem: Split(
            **vars(_read(path)), name=path.stem, source_vocabulary=source,
            target_vocabulary=target, fields=task.fields, resources=resources,
        )
        for path in paths
    }  # fmt: skip
    return TaskData(task, source, target, splits, num_training_pairs=0)


def _is_plain(split: Split) -> bool:
    values = (value for column in split.extras.values() for value in column)
    return all(isinstance(value, str) or _are_ids(value) for value in values)


def _are_ids(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.int32 and value.ndim == 1


def _rows(split: Split) -> Iterator[Mapping[str, Any]]:
    for index in range(len(split)):
        yield {
            "source": split.sources[index],
            "target": split.targets[index],
            "references": split.references[index],
            "number": split.numbers[index],
            "extras": {name: column[index] for name, column in split.extras.items()},
        }


def _value(value: str | list[int], where: str) -> Any:
    """Returns a text, or ids as an array."""
    if isinstance(value, str):
        return value
    if any(abs(each) > _LARGEST for each in value):
        raise RunDirectoryError(f"{where}: expected ids of 32 bits, found others")
    return np.array(value, np.int32)


def _read(path: Path) -> Texts:
    lines = path.read_bytes().split(b"\n")[:-1]
    rows = [
        json_files.parse_json(line, _SHAPE, f"{path}:{number}", RunDirectoryError)
        for number, line in enumerate(lines, start=1)
    ]
    columns: dict[str, list[Any]] = {}
    for number, row in enumerate(rows, start=1):
        where = f"{path}:{number}"
        if row["extras"].keys() != rows[0]["extras"].keys():
            raise RunDirectoryError(f"{where}: expected extras as in the first line, found others")
        for name, value in row["extras"].items():
            columns.setdefault(name, []).append(_value(value, where))
    return Texts(
        [row["source"] for row in rows], [row["target"] for row in rows],
        [row["references"] for row in rows], [row["number"] for row in rows], columns,
    )  # fmt: skip
