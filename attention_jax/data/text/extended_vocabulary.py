"""Extended vocabulary: ids beyond the vocabulary for words of a source that outputs may copy.

An output may copy words of its source that the vocabulary of outputs lacks. Of V ids, the next one
is that of the source's first such word, V + 1 that of its second, and so on: a word that is there
twice has one id, and the same id is another word beside another source.

Subwords and characters seldom lack anything: then there are no further ids, and what is copied are
tokens that the vocabulary has.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Int

from attention_jax.data.text.symbol_kinds import is_tag
from attention_jax.data.text.vocabulary import SUBWORDS
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

_TAGGED = "tags_"  # kinds of sources that have tags beside letters


def check_can_copy(source_vocabulary: Any, target_vocabulary: Any) -> None:
    """Raises `DataError` if no symbol of the one can be a symbol of the other."""
    kinds = source_vocabulary.kind, target_vocabulary.kind
    is_of_letters = kinds[0].startswith(_TAGGED) and kinds[1] == "characters"
    if kinds[0] != kinds[1] and not is_of_letters:
        raise DataError(
            "config.model.readout.name: expected sources and outputs of the same kind of symbols, "
            f"to copy from one to the other, found {kinds[0]} and {kinds[1]}"
        )


def own_words(source_vocabulary: Any, target_vocabulary: Any, text: str) -> tuple[str, ...]:
    """Returns the symbols of a source that its outputs may copy and the vocabulary lacks, in order.

    Tags are no part of any output.

    Args:
      source_vocabulary: Splits the text into symbols.
      target_vocabulary: What outputs consist of.
      text: The source.
    """
    if source_vocabulary.kind == SUBWORDS:
        return ()
    symbols = [symbol for symbol in _copied(source_vocabulary, text) if symbol is not None]
    known = target_vocabulary.ids_of(symbols)
    lacking = (
        symbol for symbol, id in zip(symbols, known, strict=True) if id == SpecialIds.UNK
    )
    return tuple(dict.fromkeys(lacking))


def extended(vocabulary: Any, words: Iterable[str]) -> Any:
    """Returns a vocabulary with a source's own words behind those that it has; itself for none."""
    words = tuple(words)
    return vocabulary.extended(words) if words else vocabulary


def source_in_outputs(
    source_vocabulary: Any, target_vocabulary: Any, text: str
) -> Int[np.ndarray, " _"]:
    """Returns the id that each token of a source has in outputs, int32; 0 for what is in none.

    That of its EOS, the last one, is 0 as well: an end is not copied, but generated.
    """
    vocabulary = extended(target_vocabulary, own_words(source_vocabulary, target_vocabulary, text))
    symbols = _copied(source_vocabulary, text)
    ids = [SpecialIds.PAD if symbol is None else vocabulary.ids_of([symbol])[0]
           for symbol in symbols]  # fmt: skip
    known = np.array([*ids, SpecialIds.EOS], np.int32)
    return np.where(known >= SpecialIds.COUNT, known, SpecialIds.PAD).astype(np.int32)


def _copied(vocabulary: Any, text: str) -> list[str | None]:
    """Returns the symbol of each token of a source, None for tags."""
    symbols = vocabulary.split(text)
    if not vocabulary.kind.startswith(_TAGGED):
        return symbols
    return [None if is_tag(symbol) else symbol for symbol in symbols]
