"""Told unknown words: what the first unknown ids of an output stand for, as a user has said."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

from attention_jax.types import SpecialIds


class ToldVocabulary:
    """A vocabulary that writes the first unknown words of an output as they were told.

    Whatever else a vocabulary does, that of the output does.
    """

    def __init__(self, vocabulary: Any, told: Sequence[tuple[str, str]]):
        """Takes what `told_words` returned."""
        self._vocabulary, self._told = vocabulary, tuple(told)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vocabulary, name)

    def decode(
        self, ids: Iterable[SupportsIndex], *, unknown: Iterable[str | None] = ()
    ) -> str:
        """Detokenization: as `Vocabulary.decode`; what is told comes before what is given."""
        further = itertools.islice(unknown, len(self._told), None)
        written = [written for written, _ in self._told]
        return self._vocabulary.decode(ids, unknown=[*written, *further])

    def tokens(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """Returns a printable piece for each id, including special ones."""
        ids = [*ids]
        found = self._vocabulary.tokens(ids)
        places = (place for place, index in enumerate(ids) if int(index) == SpecialIds.UNK)
        for place, (_, printed) in zip(places, self._told, strict=False):
            found[place] = printed or found[place]
        return found


def told_words(
    vocabulary: Any, ids: Sequence[SupportsIndex], text: str
) -> tuple[tuple[str, str], ...]:
    """Tells the unknown words of a text: what `decode` takes, and what is printed, for each.

    Args:
      vocabulary: Vocabulary of the text.
      ids: Its ids in it.
      text: The text.
    """
    places = [place for place, index in enumerate(ids) if int(index) == SpecialIds.UNK]
    if not places:
        return ()
    written, printed = vocabulary.as_unknown(text), vocabulary.surfaces(text)
    return tuple((written[place], printed[place].strip()) for place in places)


def with_told(vocabulary: Any, told: Sequence[tuple[str, str]]) -> Any:
    """Returns a vocabulary that writes unknown words as they were told; itself for none."""
    return ToldVocabulary(vocabulary, told) if told else vocabulary
