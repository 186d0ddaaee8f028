"""Vocabularies of whole symbols: words, characters, or symbols that spaces separate."""

import collections
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, SupportsIndex, runtime_checkable

from attention_jax.data.text import tokenization
from attention_jax.errors import DataError
from attention_jax.files import replacing
from attention_jax.json_files import Maybe, mismatch, read_json
from attention_jax.spaced_words import spaced_words
from attention_jax.types import SpecialIds

RECORD_FILE = "vocabulary.json"
SUBWORDS = "bpe"  # the kind of vocabulary whose pieces join to words; see `subwords`
SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<unk>")


@runtime_checkable
class Vocabulary(Protocol):
    """Vocabulary: a two-way map between texts and lists of ids, the first of them `SpecialIds`."""

    @property
    def kind(self) -> str:
        """`bpe`, or the kind of a `SymbolVocabulary`."""
        ...

    @property
    def size(self) -> int:
        """Number of ids, including special ones."""
        ...

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without BOS and EOS."""
        ...

    def decode(
        self, ids: Iterable[SupportsIndex], *, unknown: Iterable[str | None] = ()
    ) -> str:
        """Detokenization: returns the text of ids up to the first EOS, without PAD and BOS.

        Args:
          ids: The ids.
          unknown: Texts for the unknown ones among them, in order; None for `<unk>`.
        """
        ...

    def tokens(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """Returns a printable piece for each id, including special ones."""
        ...

    def surfaces(self, text: str) -> list[str]:
        """Returns the part of the text for which each of its ids stands, unknown ones included."""
        ...

    def save(self, directory: str | Path) -> None:
        """Writes the vocabulary in the form that `load_vocabulary` reads."""
        ...


def content_ids(ids: Iterable[SupportsIndex]) -> list[int]:
    """Returns the ids before the first EOS, without PAD and BOS."""
    content = []
    for index in map(int, ids):
        if index == SpecialIds.EOS:
            break
        if index not in (SpecialIds.PAD, SpecialIds.BOS):
            content.append(index)
    return content


# By the kind of a vocabulary: from a text to its symbols, and back.
_SPLIT: dict[str, Callable[[str], list[str]]] = {
    "words": tokenization.tokenize,
    "characters": list,
    "symbols": spaced_words,
}
_JOIN: dict[str, Callable[[list[str]], str]] = {
    "words": tokenization.detokenize,
    "characters": "".join,
    "symbols": " ".join,
}
# The text of a symbol, without the joiners of tokenization.
_SURFACE: dict[str, Callable[[str], str]] = {
    "words": tokenization.surface,
    "characters": str,
    "symbols": str,
}


class SymbolVocabulary:
    """Vocabulary of whole symbols, such as words or characters; any other symbol is UNK.

    Attributes:
      kind: `words` (split at spaces and punctuation), `characters`, or `symbols` (split at
        spaces, such as phonemes).
    """

    def __init__(self, kind: str, symbols: Sequence[str]):
        self.kind = kind
        self._symbols = (*SPECIAL_TOKENS, *symbols)
        # Without the special tokens: a text that spells `</s>` does not end there.
        self._ids = {
            symbol: index for index, symbol in enumerate(self._symbols) if index >= SpecialIds.COUNT
        }

    @classmethod
    def train(cls, kind: str, texts: Iterable[str], size: int = 0) -> "SymbolVocabulary":
        """Collects the symbols of the training texts, most frequent first.

        Args:
          kind: `words`, `characters` or `symbols`.
          texts: Training texts of one side, or of both for a joint vocabulary.
          size: Maximum number of ids, including special ones; 0 keeps every symbol.
        """
        counts = collections.Counter(symbol for text in texts for symbol in _SPLIT[kind](text))
        # Equally frequent ones in the order of code points: ids do not depend on the texts' order.
        ranked = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
        return cls(kind, ranked[: size - SpecialIds.COUNT] if size else ranked)

    @property
    def size(self) -> int:
        """Number of ids, including special ones."""
        return len(self._symbols)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without BOS and EOS."""
        return [self._ids.get(symbol, SpecialIds.UNK) for symbol in self.split(text)]

    def split(self, text: str) -> list[str]:
        """Returns the symbol of each id of a text, with joiners, including unknown symbols."""
        return _SPLIT[self.kind](text)

    def surfaces(self, text: str) -> list[str]:
        """Returns the part of the text for which each of its ids stands, unknown ones included."""
        return [*map(_SURFACE[self.kind], self.split(text))]

    def decode(
        self, ids: Iterable[SupportsIndex], *, unknown: Iterable[str | None] = ()
    ) -> str:
        """Detokenization: returns the text of ids up to the first EOS, without PAD and BOS.

        Args:
          ids: The ids.
          unknown: Symbols for the unknown ones among them, in order; None leaves `<unk>`.
        """
        symbols = [self._symbols[index] for index in content_ids(ids)]
        places = (n for n, index in enumerate(content_ids(ids)) if index == SpecialIds.UNK)
        for place, symbol in zip(places, unknown, strict=False):
            symbols[place] = symbol or symbols[place]
        return _JOIN[self.kind](symbols)

    def tokens(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """Returns a printable piece for each id, including special ones."""
        return [_SURFACE[self.kind](self._symbols[int(index)]) for index in ids]

    def save(self, directory: str | Path) -> None:
        """Writes `vocabulary.json`."""
        write_record(directory, {"kind": self.kind, "symbols": self._symbols[SpecialIds.COUNT :]})


def tokens_in_text(
    vocabulary: "Vocabulary", ids: Iterable[SupportsIndex], text: str
) -> list[str]:
    """Returns a printable piece for each id of a text, with the text itself for unknown ones."""
    ids = list(ids)
    tokens = vocabulary.tokens(ids)
    unknown = [place for place, index in enumerate(ids) if int(index) == SpecialIds.UNK]
    surfaces = vocabulary.surfaces(text) if unknown else []  # another tokenization, seldom needed
    for place in unknown:
        tokens[place] = surfaces[place].strip() or tokens[place]
    return tokens


def write_record(directory: str | Path, content: dict[str, Any]) -> None:
    """Writes `vocabulary.json` atomically, with a checksum of its content."""
    record = {**content, "sha256": _checksum(content)}
    text = json.dumps(record, ensure_ascii=False, indent=0) + "\n"
    write_atomically(Path(directory) / RECORD_FILE, text.encode())


def read_record(directory: str | Path) -> dict[str, Any]:
    """Reads the record that `write_record` wrote.

    Raises:
      DataError: If it is missing or damaged.
    """
    path = Path(directory) / RECORD_FILE
    try:
        record = read_json(path, {"kind": {SUBWORDS, *_SPLIT}, "sha256": str})
    except FileNotFoundError:
        raise DataError(f"{path}: expected a saved vocabulary, found none") from None
    recorded = record.pop("sha256")
    if recorded != _checksum(record):
        raise DataError(f"{path}: the vocabulary does not match its checksum, the file is damaged")
    # A right checksum does not mean that this program wrote the content.
    shape = {"symbols": [str]}
    if record["kind"] == SUBWORDS:
        shape = {"model_sha256": str, "given_words": Maybe(bool)}
    if problem := mismatch(record, shape):
        raise DataError(f"{path}: {problem}")
    return record


def write_atomically(path: Path, content: bytes) -> None:
    """Atomic write: writes a file so that no reader ever sees a part of it.

    Raises:
      DataError: If it cannot be written.
    """
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from None


def _checksum(content: dict[str, Any]) -> str:
    # Keys sorted, so that the checksum does not depend on the order in which a file has them.
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
