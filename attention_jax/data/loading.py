"""Loading of data: the texts of a data set, its vocabularies, and its splits as token ids."""

import dataclasses
import functools
import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Split, Texts
from attention_jax.data.field import Field
from attention_jax.data.lexicon import load_resources
from attention_jax.data.task import Task, find_task, further_fields
from attention_jax.data.text.vocabulary import Vocabulary
from attention_jax.data.vocabularies import obtain_vocabularies
from attention_jax.errors import DataError
from attention_jax.spaced_words import spaced_words


@dataclasses.dataclass(frozen=True, eq=False)
class TaskData:
    """The data of a task: its splits and vocabularies.

    Attributes:
      task: Defines the fields of examples, and how outputs are scored.
      source_vocabulary: Vocabulary of the sources.
      target_vocabulary: Vocabulary of the targets; the same object if it is joint.
      splits: The splits by name.
      num_training_pairs: Size of the data set's training split, before the config leaves any out.
    """

    task: Task
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    splits: Mapping[str, Split]
    num_training_pairs: int

    def split(self, name: str) -> Split:
        """Returns a split.

        Raises:
          DataError: If there is none of this name.
        """
        if name not in self.splits:
            names = ", ".join(self.splits)
            raise DataError(f"split: expected one of {names}, found {name!r}")
        return self.splits[name]

    def with_field(
        self, split: str, field: Field, values: Sequence[Any] | None = None
    ) -> "TaskData":
        """Returns a copy with one more field in a split; see `Split.with_field`."""
        changed = self.split(split).with_field(field, values)
        return dataclasses.replace(self, splits={**self.splits, split: changed})

    def with_fields(self, names: Iterable[str]) -> "TaskData":
        """Returns a copy with further fields in every split: those that compute their own values.

        Args:
          names: Names of arrays, of the task's own fields (which stay as they are) and of those in
            `data/fields`.

        Raises:
          ConfigError: If there is no such field.
        """
        data = self
        for field in further_fields(self.task, names):
            if field.values is not None:
                for split in data.splits:
                    data = data.with_field(split, field)
        return data

    @functools.cached_property
    def fingerprint(self) -> str:
        """Data hash: SHA-256 of every text of every split, in order."""
        digest = hashlib.sha256(self.task.label.encode())
        for name, split in self.splits.items():
            digest.update(f"\0{name}\0".encode() + split.content())
        return digest.hexdigest()

    @functools.cached_property
    def fingerprints(self) -> dict[str, str]:
        """Data hash of each split: SHA-256 of its texts, in order."""
        return {name: split.fingerprint for name, split in self.splits.items()}


def build_task(data_config: DataConfig, vocab_dir: str | Path) -> TaskData:
    """Loads a data set, preparing it if need be, and its vocabularies.

    Args:
      data_config: Config of the data set.
      vocab_dir: Folder of the run's vocabularies, which are loaded if they exist. Else those that
        the config names are saved there, or new ones that are trained on the training split.

    Raises:
      DataError: If data or vocabularies are missing or damaged.
    """
    task = find_task(data_config)
    texts = {
        name: _texts(examples, data_config, every_reference=name == "train")
        for name, examples in data_config.load().items()
    }
    num_training_pairs = len(texts["train"])
    if data_config.max_train_examples:
        texts["train"] = texts["train"].sample(data_config.max_train_examples)
    # Before sources of other lengths are left out: such runs share the vocabulary of the whole.
    source, target = obtain_vocabularies(texts["train"], data_config, vocab_dir)
    resources = load_resources(vocab_dir, source, target)
    texts["train"] = _of_wanted_length(texts["train"], data_config)
    splits = {
        name: Split(
            **vars(part), name=name, source_vocabulary=source, target_vocabulary=target,
            fields=task.fields, resources=resources,
        )
        for name, part in texts.items()
    }  # fmt: skip
    splits = data_config.finished(splits)
    return TaskData(task, source, target, splits, num_training_pairs)


def _texts(
    examples: Iterable[Sequence[Any]], data_config: DataConfig, *, every_reference: bool
) -> Texts:
    """Lists examples as parallel texts, once for the first reference or for every one."""
    texts, extras = Texts([], [], [], []), {}
    for source, references, *further in examples:
        references = [_cased(reference, data_config) for reference in references]
        # In training each accepted output is a target; a metric compares with all of them anyway.
        for target in references if every_reference else references[:1]:
            texts.sources.append(_cased(source, data_config))
            texts.targets.append(target)
            texts.references.append(references)
            texts.numbers.append(len(texts.numbers))
            for values in further:
                for name, value in values.items():
                    is_text = name in data_config.further_sources
                    value = _cased(value, data_config) if is_text else value
                    extras.setdefault(name, []).append(value)
    return dataclasses.replace(texts, extras=extras)


def _cased(text: str, data_config: DataConfig) -> str:
    return text.lower() if data_config.lowercase else text


def _of_wanted_length(train: Texts, data_config: DataConfig) -> Texts:
    """Leaves out training pairs whose source has too few or too many words."""
    fewest = data_config.min_train_source_words
    most = data_config.max_train_source_words or sys.maxsize
    if not fewest and most == sys.maxsize:
        return train
    words = [len(spaced_words(source)) for source in train.sources]
    wanted = [index for index, length in enumerate(words) if fewest <= length <= most]
    if not wanted:
        raise DataError(
            f"data: expected training sources of {fewest} to {most} words, found none "
            f"among {len(train)}"
        )
    return train.select(wanted)
