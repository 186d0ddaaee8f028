"""Vocabularies of whole symbols: words, characters, or symbols that spaces separate."""

import collections
import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, SupportsIndex, runtime_checkable

from attention_jax.data.text.symbol_kinds import KINDS
from attention_jax.errors import DataError
from attention_jax.files import replacing
from attention_jax.json_files import Maybe, mismatch, read_json
from attention_jax.types import SpecialIds

RECORD_FILE = "vocabulary.json"
SUBWORDS = "bpe"  # the kind of vocabulary whose pieces join to words; see `subwords`
# In records, of that kind too, from another program: see `pieces` and `byte_pairs`.
PIECES, BYTE_PAIRS = "pieces", "byte_pairs"
SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<unk>")
# What records have that are not of one of `symbol_kinds`.
_SHAPES: dict[str, Any] = {
    SUBWORDS: {"model_sha256": str, "given_words": Maybe(bool)},
    PIECES: {"model_sha256": str, "symbols": [str]},
    BYTE_PAIRS: {
        "symbols": [str], "merges": [[str]], "silent": [str], "opening": str, "adds_space": bool,
    },
}  # fmt: skip


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

    def as_unknown(self, text: str) -> list[str]:
        """Returns what `decode` takes for each id of the text, were it unknown."""
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


def filled_symbols(
    content: Iterable[int], symbol: Callable[[int], str], unknown: Iterable[str | None]
) -> list[str]:
    """Returns the symbol of each id, with texts in the place of unknown ones.

    Args:
      content: From `content_ids`.
      symbol: Gives the symbol of an id that is not special.
      unknown: Texts for the unknown ones, in order; None for `<unk>`.
    """
    given = iter(unknown)
    return [
        given_or_mark(next(given, None)) if index == SpecialIds.UNK else symbol(index)
        for index in content
    ]


def given_or_mark(text: str | None) -> str:
    """Returns the text for an unknown id, `<unk>` for None."""
    return SPECIAL_TOKENS[SpecialIds.UNK] if text is None else text


def printable_symbols(
    ids: Iterable[SupportsIndex], symbol: Callable[[int], str]
) -> list[str]:
    """Returns the symbol of each id, and the names of special ones."""
    return [
        SPECIAL_TOKENS[index] if index < SpecialIds.COUNT else symbol(index)
        for index in map(int, ids)
    ]


class SymbolVocabulary:
    """Vocabulary of whole symbols, such as words or characters; any other symbol is UNK.

    Attributes:
      kind: `words` (split at spaces and punctuation), `characters`, `symbols` (split at spaces,
        such as phonemes), or another of `symbol_kinds`.
      silent_ids: Of symbols that no text has.
    """

    def __init__(self, kind: str, symbols: Sequence[str]):
        self.kind = kind
        self._symbols = (*SPECIAL_TOKENS, *symbols)
        first = SpecialIds.COUNT + len(KINDS[self.kind].silent)
        self.silent_ids = range(SpecialIds.COUNT, first)
        # Without special and silent ones: a text that spells `</s>` does not end there.
        self._ids = {
            symbol: index for index, symbol in enumerate(self._symbols) if index >= first
        }

    @classmethod
    def train(cls, kind: str, texts: Iterable[str], size: int = 0) -> "SymbolVocabulary":
        """Collects the symbols of the training texts, most frequent first.

        Args:
          kind: Of `symbol_kinds`.
          texts: Training texts of one side, or of both for a joint vocabulary.
          size: Maximum number of ids, including special ones; 0 keeps every symbol.
        """
        split, further, silent = KINDS[kind].split, KINDS[kind].further, KINDS[kind].silent
        counts = collections.Counter(
            symbol for text in texts for symbol in (*split(text), *further(text))
        )
        # Equally frequent ones in the order of code points: ids do not depend on the texts' order.
        ranked = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
        # Silent ones first, where `STEP` and the like have their ids whatever the texts are.
        known = [*silent, *ranked]
        return cls(kind, known[: size - SpecialIds.COUNT] if size else known)

    @property
    def size(self) -> int:
        """Number of ids, including special ones."""
        return len(self._symbols)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without BOS and EOS."""
        return self.ids_of(self.split(text))

    def ids_of(self, symbols: Iterable[str]) -> list[int]:
        """Returns the id of each symbol, UNK for those that the vocabulary lacks."""
        return [self._ids.get(symbol, SpecialIds.UNK) for symbol in symbols]

    def extended(self, words: Sequence[str]) -> "SymbolVocabulary":
        """Returns a vocabulary that has further symbols, whose ids come after those of this one."""
        larger = copy.copy(self)
        larger._symbols = (*self._symbols, *words)
        first = enumerate(words, start=self.size)
        larger._ids = {**self._ids, **{word: index for index, word in first}}
        return larger

    def split(self, text: str) -> list[str]:
        """Returns the symbol of each id of a text, with joiners, including unknown symbols."""
        return KINDS[self.kind].split(text)

    def surfaces(self, text: str) -> list[str]:
        """Returns the part of the text for which each of its ids stands, unknown ones included."""
        return [*map(KINDS[self.kind].surface, self.split(text))]

    def as_unknown(self, text: str) -> list[str]:
        """Returns what `decode` takes for each id of the text, were it unknown: its symbol."""
        return self.split(text)

    def decode(
        self, ids: Iterable[SupportsIndex], *, unknown: Iterable[str | None] = ()
    ) -> str:
        """Detokenization: returns the text of ids up to the first EOS, without PAD, BOS and STEP.

        Args:
          ids: The ids.
          unknown: Symbols for the unknown ones among them, in order; None leaves `<unk>`.
        """
        written = [index for index in content_ids(ids) if index not in self.silent_ids]
        symbols = [self._symbols[index] for index in written]
        places = (n for n, index in enumerate(written) if index == SpecialIds.UNK)
        for place, symbol in zip(places, unknown, strict=False):
            symbols[place] = given_or_mark(symbol)
        return KINDS[self.kind].join(symbols)

    def tokens(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """Returns a printable piece for each id, including special ones."""
        return [KINDS[self.kind].surface(self._symbols[int(index)]) for index in ids]

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
        record = read_json(path, {"kind": {*_SHAPES, *KINDS}, "sha256": str})
    except FileNotFoundError:
        raise DataError(f"{path}: expected a saved vocabulary, found none") from None
    recorded = record.pop("sha256")
    if recorded != _checksum(record):
        raise DataError(f"{path}: the vocabulary does not match its checksum, the file is damaged")
    # A right checksum does not mean that this program wrote the content.
    shape = _SHAPES.get(record["kind"], {"symbols": [str]})
    if problem := mismatch(record, shape):
        raise DataError(f"{path}: {problem}")
    return record


def write_model(path: Path, model: bytes, record: dict[str, Any]) -> None:
    """Writes a model into a file, then the record beside it, which knows the model's checksum."""
    write_atomically(path, model)
    # The record comes last: a vocabulary that has one is whole.
    digest = hashlib.sha256(model).hexdigest()
    write_record(path.parent, {"kind": record["kind"], "model_sha256": digest, **record})


def read_model(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Reads a sentencepiece model and its record, as `write_model` wrote them.

    Raises:
      DataError: If either is missing or damaged.
    """
    try:
        model = path.read_bytes()
    except OSError:
        raise DataError(f"{path}: expected a sentencepiece model, found none") from None
    record = read_record(path.parent)
    if hashlib.sha256(model).hexdigest() != record["model_sha256"]:
        raise DataError(f"{path}: the model does not match its checksum, the file is damaged")
    if not model:
        raise DataError(f"{path}: expected a sentencepiece model, found an empty file")
    return model, record


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
