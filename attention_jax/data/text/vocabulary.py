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
SUBWORDS = "bpe"  # the kind of those that join to words; see `subwords`
SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<unk>")


@runtime_checkable
class Vocabulary(Protocol):
    """A two-way map between texts and lists of ids; the first ids are `SpecialIds`."""

    @property
    def kind(self) -> str:
        """`bpe`, or that of a `SymbolVocabulary`."""
        ...

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""
        ...

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without any special ones added."""
        ...

    def decode(
        self, ids: Iterable[SupportsIndex], *, unknown: Iterable[str | None] = ()
    ) -> str:
        """Returns the text of ids up to the first EOS, special ids left out.

        Args:
          ids: The ids.
          unknown: What to write for the unknown ones among them, in order; None for `<unk>`.
        """
        ...

    def tokens(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """Returns one printable piece per id, special ids included."""
        ...

    def surfaces(self, text: str) -> list[str]:
        """Returns the part of a text that each of its ids stands for, unknown ones included."""
        ...

    def save(self, directory: str | Path) -> None:
        """Writes the vocabulary so that `load_vocabulary` finds it."""
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
# What a symbol has of its text.
_SURFACE: dict[str, Callable[[str], str]] = {
    "words": tokenization.surface,
    "characters": str,
    "symbols": str,
}


class SymbolVocabulary:
    """A list of known symbols; anything else is UNK.

    Attributes:
      kind: `words` (split at spaces and punctuation), `characters`, or `symbols` (split at
        spaces, such as phonemes).
    """

    def __init__(self, kind: str, symbols: Sequence[str]):
        self.kind = kind
        self._symbols = (*SPECIAL_TOKENS, *symbols)
        self._ids = {
            symbol: index for index, symbol in enumerate(self._symbols) if index >= SpecialIds.COUNT
        }

    @classmethod
    def train(cls, kind: str, texts: Iterable[str], size: int = 0) -> "SymbolVocabulary":
        """Collects the symbols of the training texts, the most frequent ones first.

        Args:
          kind: `words`, `characters` or `symbols`.
          texts: Texts of the training side.
          size: Ids at most, the special ones included; 0 keeps every symbol.
        """
        counts = collections.Counter(symbol for text in texts for symbol in _SPLIT[kind](text))
        ranked = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
        return cls(kind, ranked[: size - SpecialIds.COUNT] if size else ranked)

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""
        return len(self._symbols)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without any special ones added."""
        return [self._ids.get(symbol, SpecialIds.UNK) for symbol in self.split(text)]

    def split(self, text: str) -> list[str]:
        """Returns the symbol of each id of a text, the unknown ones and joiners included."""
        return _SPLIT[self.kind](text)

    def surfaces(self, text: str) -> list[str]:
        """Returns the part of a text that each of its ids stands for, unknown ones included."""
        return [*map(_SURFACE[self.kind], self.split(text))]

    def decode(
        self, ids: Iterable[SupportsIndex], *, unknown: Iterable[str | None] = ()
    ) -> str:
        """Returns the text of ids up to the first EOS, special ids left out.

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
        """Returns one printable piece per id, special ids included."""
        return [_SURFACE[self.kind](self._symbols[int(index)]) for index in ids]

    def save(self, directory: str | Path) -> None:
        """Writes `vocabulary.json`."""
        write_record(directory, {"kind": self.kind, "symbols": self._symbols[SpecialIds.COUNT :]})


def tokens_in_text(
    vocabulary: "Vocabulary", ids: Iterable[SupportsIndex], text: str
) -> list[str]:
    """Returns one printable piece per id of a text, and what the text has for unknown ones."""
    ids = list(ids)
    tokens = vocabulary.tokens(ids)
    unknown = [place for place, index in enumerate(ids) if int(index) == SpecialIds.UNK]
    surfaces = vocabulary.surfaces(text) if unknown else []
    for place in unknown:
        tokens[place] = surfaces[place].strip() or tokens[place]
    return tokens


def write_record(directory: str | Path, content: dict[str, Any]) -> None:
    """Writes `vocabulary.json` with a checksum of its content, all of it or nothing."""
    record = {**content, "sha256": _checksum(content)}
    text = json.dumps(record, ensure_ascii=False, indent=0) + "\n"
    write_atomically(Path(directory) / RECORD_FILE, text.encode())


def read_record(directory: str | Path) -> dict[str, Any]:
    """Reads what `write_record` wrote.

    Raises:
      DataError: If it is missing, or not what was written.
    """
    path = Path(directory) / RECORD_FILE
    try:
        record = read_json(path, {"kind": {SUBWORDS, *_SPLIT}, "sha256": str})
    except FileNotFoundError:
        raise DataError(f"{path}: expected a saved vocabulary, found none") from None
    recorded = record.pop("sha256")
    if recorded != _checksum(record):
        raise DataError(f"{path}: the vocabulary does not match its checksum, the file is damaged")
    # A checksum says that nothing has changed, and nothing of who wrote it.
    shape = {"symbols": [str]}
    if record["kind"] == SUBWORDS:
        shape = {"model_sha256": str, "given_words": Maybe(bool)}
    if problem := mismatch(record, shape):
        raise DataError(f"{path}: {problem}")
    return record


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file such that nobody ever sees a part of it.

    Raises:
      DataError: If it cannot be written.
    """
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from None


def _checksum(content: dict[str, Any]) -> str:
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
