"""Examples: texts with or without known outputs, their token ids and the values of their fields."""

import abc
import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, SupportsIndex

import numpy as np
from jaxtyping import Int

from attention_jax.data.batch_plan import permutation
from attention_jax.data.field import SOURCE, SOURCE_AXIS, TARGET, TARGET_AXIS, Field
from attention_jax.data.text.extended_vocabulary import extended, own_words
from attention_jax.data.text.vocabulary import Vocabulary, tokens_in_text
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

_SAMPLE_KEY = 20_160_101
_LENGTH_STEP = 8  # lengths of fields' own axes are rounded up to it, so that splits share shapes


class Examples(abc.ABC):
    """Examples, from which batches are made: a value of every field for each of them.

    Attributes:
      fields: The fields of a batch.
      extras: Values of fields that texts do not determine, by name, one for each example.
      resources: What fields look up beside the texts, by name, such as a lexicon.
      sources: The texts of the sources, or of the prompts.
      source_vocabulary: Their vocabulary.
      target_vocabulary: That of the outputs; None where they continue their sources.
    """

    fields: Sequence[Field]
    extras: Mapping[str, Sequence[Any]]
    resources: Mapping[str, Any]
    sources: Sequence[str]
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary | None

    @abc.abstractmethod
    def __len__(self) -> int:
        """Returns the number of examples."""

    @abc.abstractmethod
    def ids(self, name: str) -> Sequence[Int[np.ndarray, " _"]]:
        """Returns the token ids of a text field, int32, ending in EOS."""

    @functools.cached_property
    def columns(self) -> dict[str, Sequence[Any]]:
        """The values of every field, by its name.

        Raises:
          DataError: If the values of a field are missing.
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

    @functools.cached_property
    def own_words(self) -> list[tuple[str, ...]]:
        """The words of each source with ids beyond the vocabulary, if there is a field of these."""
        if not any(field.extends_targets for field in self.fields):
            return [()] * len(self)
        vocabularies = self.source_vocabulary, self.target_vocabulary
        return [own_words(*vocabularies, text) for text in self.sources]

    @property
    def input_names(self) -> list[str]:
        """The keys of a batch that are known before the output is."""
        return [name for field in self.fields if field.is_input for name in field.names]

    def lengths(self, axis: str) -> Int[np.ndarray, " N"]:
        """Returns the lengths of all examples along an axis; 1 if no field begins with it.

        Of several texts along it, such as sources in two languages, those of the longer one.
        """
        lengths = self.first_lengths(axis)
        for field in self._along(axis)[1:]:
            if field.is_text:
                lengths = np.maximum(lengths, self._lengths_of(field))
        return lengths

    def first_lengths(self, axis: str) -> Int[np.ndarray, " N"]:
        """Returns the lengths of the first field along an axis, by which a search limits outputs.

        It is the source from which they begin, however long a further one is; 1 if there is none.
        """
        fields = self._along(axis)
        return self._lengths_of(fields[0]) if fields else np.ones(len(self), np.int64)

    def _along(self, axis: str) -> list[Field]:
        return [field for field in self.fields if field.axes[:1] == (axis,)]

    def _lengths_of(self, field: Field) -> Int[np.ndarray, " N"]:
        return np.fromiter(map(len, self.columns[field.name]), np.int64, len(self))

    @functools.cached_property
    def own_lengths(self) -> dict[str, int]:
        """Lengths of the axes other than source and target: those of their longest value."""
        # One length for all batches, as bucketing knows of sources and targets only.
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
    """Parallel text: lists of sources, targets and references.

    Attributes:
      sources: Source texts.
      targets: Target texts.
      references: All accepted outputs of each source.
      numbers: The place of each example in the whole data set.
      extras: Further values of each, by the names of fields.
    """

    sources: list[str]
    targets: list[str]
    references: list[list[str]]
    numbers: list[int]
    extras: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sources)

    def content(self) -> bytes:
        """Returns all texts in order as bytes to be hashed."""
        columns = (self.sources, self.targets, map("\t".join, self.references))
        return f"{len(self)}\0".encode() + "".join(map("\n".join, columns)).encode()

    def select(self, indices: Iterable[SupportsIndex]) -> Self:
        """Returns a copy with these examples only."""
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
        """Returns a fixed random sample in the original order, or everything if that is no larger.

        Smaller samples are contained in larger ones.
        """
        if size >= len(self):
            return self
        return self.select(np.sort(permutation(len(self), _SAMPLE_KEY)[:size]))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Split(Texts, Examples):
    """A split: examples with known outputs, as texts and as ids.

    In training, every accepted output of a source makes an example. In other splits every source
    makes one, and its target is the first of its references.

    Attributes:
      name: `train`, `validation` or `test`.
      source_vocabulary: Vocabulary of the sources.
      target_vocabulary: Vocabulary of the targets.
      fields: The fields of its batches.
      resources: What they look up beside the texts.
    """

    name: str
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    fields: tuple[Field, ...] = (SOURCE, TARGET)
    resources: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def source_ids(self) -> list[np.ndarray]:
        """Source ids, int32, ending in EOS."""
        return encoded(self.source_vocabulary, self.sources)

    @functools.cached_property
    def target_ids(self) -> list[np.ndarray]:
        """Target ids, int32, ending in EOS: those in `extras`, where texts do not tell them."""
        given = self.extras.get(TARGET.name)
        if given is not None:
            return [*given]
        if not any(self.own_words):
            return encoded(self.target_vocabulary, self.targets)
        return [
            encoded(extended(self.target_vocabulary, words), [text])[0]
            for words, text in zip(self.own_words, self.targets, strict=True)
        ]

    def target_tokens(self, index: int) -> list[str]:
        """Returns a printable piece for each id of a target, its own text for unknown ones."""
        vocabulary = extended(self.target_vocabulary, self.own_words[index])
        ids = self.target_ids[index]
        if TARGET.name in self.extras:  # ids that no text tells
            return vocabulary.tokens(ids)
        return tokens_in_text(vocabulary, ids, self.targets[index])

    def ids(self, name: str) -> list[np.ndarray]:
        """Returns the ids of the field `source` or `target`."""
        return getattr(self, f"{name}_ids")

    def content(self) -> bytes:
        """Returns all texts and the fingerprints of further fields as bytes to be hashed."""
        further = [
            b"\0".join([field.name.encode(), *map(field.fingerprint, self.columns[field.name])])
            for field in self.fields
            if field.fingerprint is not None
        ]
        return b"\0".join([super().content(), *further])

    @functools.cached_property
    def fingerprint(self) -> str:
        """Data hash: SHA-256 of the texts, in order."""
        return hashlib.sha256(self.content()).hexdigest()

    def with_field(self, field: Field, values: Sequence[Any] | None = None) -> "Split":
        """Returns a copy with one more field; the split itself if it has a field of this name.

        Args:
          field: The field.
          values: One for each example, if the field does not compute them itself.
        """
        if field.name in {each.name for each in self.fields}:
            return self
        extras = self.extras if values is None else {**self.extras, field.name: values}
        return dataclasses.replace(self, fields=(*self.fields, field), extras=extras)

    def with_target_ids(self, ids: Sequence[np.ndarray]) -> "Split":
        """Returns a copy with other targets, such as the outputs of a search.

        Args:
          ids: int32, ending in EOS. They are kept as they are: to encode their texts again may give
            other ids, as a text has many segmentations into subwords.
        """
        texts = [
            extended(self.target_vocabulary, words).decode(each)
            for words, each in zip(self.own_words, ids, strict=True)
        ]
        extras = {**self.extras, TARGET.name: [*ids]}
        return dataclasses.replace(self, targets=texts, extras=extras)


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs(Examples):
    """Inputs of a search: texts that a user wants to be translated or, as prompts, continued.

    Attributes:
      sources: The texts.
      source_vocabulary: Their vocabulary.
      fields: The fields of their batches, all of them inputs.
      extras: Values of fields that the texts do not determine.
      resources: What fields look up beside the texts.
      target_vocabulary: That of the outputs, if anything of the texts is to be copied.
    """

    sources: Sequence[str]
    source_vocabulary: Vocabulary
    fields: tuple[Field, ...] = (SOURCE,)
    extras: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    resources: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    target_vocabulary: Vocabulary | None = None

    def __len__(self) -> int:
        return len(self.sources)

    @functools.cached_property
    def source_ids(self) -> list[np.ndarray]:
        """The ids of each text, int32, ending in EOS."""
        return encoded(self.source_vocabulary, self.sources)

    def ids(self, name: str) -> list[np.ndarray]:
        """Returns the ids of the texts, be the field `source` or `prompt`."""
        return self.source_ids


def encoded(vocabulary: Vocabulary, texts: Iterable[str]) -> list[np.ndarray]:
    """Encodes texts as token ids, int32, with EOS at the end."""
    return [np.array([*vocabulary.encode(text), SpecialIds.EOS], np.int32) for text in texts]
