"""Examples: texts with their outputs, or alone, and the values of their fields."""

import abc
import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, SupportsIndex

import numpy as np
from jaxtyping import Int

from attention_jax.data.batch_plan import permutation
from attention_jax.data.field import SOURCE, SOURCE_AXIS, TARGET, TARGET_AXIS, Field
from attention_jax.data.text.vocabulary import Vocabulary
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

_SAMPLE_KEY = 20_160_101
_LENGTH_STEP = 8  # axes of a field's own are rounded up, so that splits share shapes


class Examples(abc.ABC):
    """What batches are made of: fields, with a value of each for every example.

    Attributes:
      fields: What a batch holds.
      extras: Values of the fields that no text tells, by name, one for each example.
    """

    fields: Sequence[Field]
    extras: Mapping[str, Sequence[Any]]

    @abc.abstractmethod
    def __len__(self) -> int:
        """Returns how many examples there are."""

    @abc.abstractmethod
    def ids(self, name: str) -> Sequence[Int[np.ndarray, " _"]]:
        """Returns the token ids of a text field, int32, ending in EOS."""

    @functools.cached_property
    def columns(self) -> dict[str, Sequence[Any]]:
        """The values of every field by its name.

        Raises:
          DataError: If the examples lack those of a field.
        """
        found = {}
        for field in self.fields:
            if field.values is not None:
                found[field.name] = field.values(self)
            elif field.name in self.extras:
                found[field.name] = self.extras[field.name]
            else:
                raise DataError(
                    f"field {field.name!r}: expected a value for each example, found none"
                )
        return found

    @property
    def input_names(self) -> list[str]:
        """The keys of a batch that are known before the output is."""
        return [name for field in self.fields if field.is_input for name in field.names]

    def lengths(self, axis: str) -> Int[np.ndarray, " N"]:
        """Returns how long the examples are along an axis; 1 where no field begins with it."""
        for field in self.fields:
            if field.axes[:1] == (axis,):
                values = self.columns[field.name]
                return np.fromiter(map(len, values), np.int64, len(values))
        return np.ones(len(self), np.int64)

    @functools.cached_property
    def own_lengths(self) -> dict[str, int]:
        """How long the axes are that neither sources nor targets have: as their longest value."""
        return {
            axis: -(-self._longest(field, place) // _LENGTH_STEP) * _LENGTH_STEP
            for field in self.fields
            for place, axis in enumerate(field.axes)
            if isinstance(axis, str) and axis not in (SOURCE_AXIS, TARGET_AXIS)
        }

    def _longest(self, field: Field, place: int) -> int:
        return max((np.shape(value)[place] for value in self.columns[field.name]), default=1)


@dataclasses.dataclass(frozen=True, eq=False)
class Texts:
    """Parallel lists of texts.

    Attributes:
      sources: Source texts.
      targets: Target texts.
      references: Every accepted output of each source.
      numbers: Where each stood in the whole data set.
      extras: What else belongs to each, by the names of fields.
    """

    sources: list[str]
    targets: list[str]
    references: list[list[str]]
    numbers: list[int]
    extras: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sources)

    def content(self) -> bytes:
        """Returns all texts in order, to tell them from others."""
        columns = (self.sources, self.targets, map("\t".join, self.references))
        return f"{len(self)}\0".encode() + "".join(map("\n".join, columns)).encode()

    def select(self, indices: Iterable[SupportsIndex]) -> Self:
        """Returns the same with these examples only."""
        indices = list(map(int, indices))
        return dataclasses.replace(
            self,
            sources=[self.sources[index] for index in indices],
            targets=[self.targets[index] for index in indices],
            references=[self.references[index] for index in indices],
            numbers=[self.numbers[index] for index in indices],
            extras={
                name: [values[index] for index in indices] for name, values in self.extras.items()
            },
        )

    def sample(self, size: int) -> Self:
        """Returns a fixed random sample, in the same order; everything if that is no larger.

        Smaller samples are contained in larger ones.
        """
        if size >= len(self):
            return self
        return self.select(np.sort(permutation(len(self), _SAMPLE_KEY)[:size]))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Split(Texts, Examples):
    """Examples whose outputs are known, as texts and as ids.

    In training every accepted output of a source is an example; in the other splits every source
    is one, whose target is the first of its references.

    Attributes:
      name: `train`, `validation` or `test`.
      source_vocabulary: Turns sources into ids.
      target_vocabulary: Turns targets into ids.
      fields: What its batches hold.
    """

    name: str
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    fields: tuple[Field, ...] = (SOURCE, TARGET)

    @functools.cached_property
    def source_ids(self) -> list[np.ndarray]:
        """Source ids, int32, ending in EOS."""
        return encoded(self.source_vocabulary, self.sources)

    @functools.cached_property
    def target_ids(self) -> list[np.ndarray]:
        """Target ids, int32, ending in EOS."""
        return encoded(self.target_vocabulary, self.targets)

    def ids(self, name: str) -> list[np.ndarray]:
        """Returns the ids of either side."""
        return getattr(self, f"{name}_ids")

    def content(self) -> bytes:
        """Returns all texts in order, and what else tells these examples from others."""
        further = [
            b"\0".join([field.name.encode(), *map(field.fingerprint, self.columns[field.name])])
            for field in self.fields
            if field.fingerprint is not None
        ]
        return b"\0".join([super().content(), *further])

    def with_field(self, field: Field, values: Sequence[Any] | None = None) -> "Split":
        """Returns the same with one more field, or as it is if it has one of this name.

        Args:
          field: The field.
          values: One for each example, where the field does not find them itself.
        """
        if field.name in {each.name for each in self.fields}:
            return self
        extras = self.extras if values is None else {**self.extras, field.name: values}
        return dataclasses.replace(self, fields=(*self.fields, field), extras=extras)

    def with_target_ids(self, ids: Sequence[np.ndarray]) -> "Split":
        """Returns the same sources with other targets, such as outputs.

        Args:
          ids: int32, ending in EOS. They are kept as they are, though encoding their texts may
            give others.
        """
        texts = [self.target_vocabulary.decode(each) for each in ids]
        changed = dataclasses.replace(self, targets=texts)
        vars(changed)["target_ids"] = list(ids)  # where a cached property keeps its value
        return changed


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs(Examples):
    """Texts whose outputs nobody knows: what a user wants to be translated, or gone on from.

    Attributes:
      sources: The texts.
      source_vocabulary: Turns them into ids.
      fields: What their batches hold, all of it known beforehand.
      extras: Values of fields that the texts do not tell.
    """

    sources: Sequence[str]
    source_vocabulary: Vocabulary
    fields: tuple[Field, ...] = (SOURCE,)
    extras: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sources)

    @functools.cached_property
    def source_ids(self) -> list[np.ndarray]:
        """The ids of each text, int32, ending in EOS."""
        return encoded(self.source_vocabulary, self.sources)

    def ids(self, name: str) -> list[np.ndarray]:
        """Returns the ids of the texts, whatever they are to a model."""
        return self.source_ids


def encoded(vocabulary: Vocabulary, texts: Iterable[str]) -> list[np.ndarray]:
    """Turns texts into token ids, int32, with EOS behind them."""
    return [np.array([*vocabulary.encode(text), SpecialIds.EOS], np.int32) for text in texts]
