"""Byte-level byte-pair encoding (BPE): a vocabulary of merged bytes that another program has made.

A text is cut into words, numbers and runs of other characters, each with the space before it. Of
each of these the bytes in UTF-8, written as printable characters, are joined in the order in which
their merges were learnt. So every text can be written, and comes back as it was.

Source: Radford et al. 2019, "Language models are unsupervised multitask learners", section 2.2;
Sennrich, Haddow and Birch 2016, section 3.2, for the merges.
"""

import itertools
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import SupportsIndex

import regex

from attention_jax.data.text.characters import SPACE
from attention_jax.data.text.vocabulary import (
    BYTE_PAIRS,
    RECORD_FILE,
    SPECIAL_TOKENS,
    SUBWORDS,
    content_ids,
    given_or_mark,
    read_record,
    write_record,
)
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

# The ends of English words first: contractions are cut off from what they contract.
_CHUNK = regex.compile(
    r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)
_PRINTABLE = {*range(33, 127), *range(161, 173), *range(174, 256)}
_MOST_KEPT = 2**16  # chunks whose pieces are remembered: most texts consist of few


def _alphabet() -> list[str]:
    """Returns how each byte is written: as itself in Latin-1, or by a character from 256 on."""
    further = itertools.count(256)
    return [chr(byte if byte in _PRINTABLE else next(further)) for byte in range(256)]


ALPHABET = _alphabet()
_BYTES = {character: byte for byte, character in enumerate(ALPHABET)}


class BytePairVocabulary:
    """Merged bytes with given ids.

    Attributes:
      symbols: The pieces by their ids, special ones left out.
      silent_ids: Of symbols that are written as nothing, such as that with which texts begin.
      given_words: Whether texts in a script that writes no spaces came with some; not known here.
    """

    kind = SUBWORDS
    given_words = False

    def __init__(
        self,
        symbols: Sequence[str],
        merges: Iterable[Sequence[str]],
        *,
        silent: Collection[str] = (),
        opening: str = "",
        adds_space: bool = False,
    ):
        """Makes the vocabulary.

        Args:
          symbols: The pieces by their ids, from the first that is not special.
          merges: The two pieces that each merge joins, in the order in which they were learnt.
          silent: The symbols that are written as nothing.
          opening: The one of these with which every text begins; an empty text for none.
          adds_space: Whether a text that does not begin with a space is given one.

        Raises:
          DataError: If a symbol has two ids, or a piece of a merge or a silent symbol has none.
        """
        self.symbols, self._merges = tuple(symbols), tuple(map(tuple, merges))
        self._silent = tuple(dict.fromkeys([*silent, *filter(None, [opening])]))
        self._opening, self._adds_space = opening, adds_space
        known = enumerate(self.symbols, start=SpecialIds.COUNT)
        self._ids = {symbol: index for index, symbol in known}
        if len(self._ids) < len(self.symbols):
            raise DataError("expected every piece once, found one with two ids")
        for merge in self._merges:
            if len(merge) != 2 or not {*merge, "".join(merge)} <= self._ids.keys():
                raise DataError(
                    f"expected merges of two pieces of the vocabulary, found {' '.join(merge)!r}"
                )
        for symbol in self._silent:
            if symbol not in self._ids:
                raise DataError(f"expected {symbol!r} among the symbols, found it without an id")
        self.silent_ids = {self._ids[symbol] for symbol in self._silent}
        self._ranks = {merge: rank for rank, merge in enumerate(self._merges)}
        self._known: dict[str, tuple[str, ...]] = {}

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""
        return SpecialIds.COUNT + len(self.symbols)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without BOS and EOS."""
        return self.ids_of(self.split(text))

    def split(self, text: str) -> list[str]:
        """Returns the piece of each id of a text."""
        chunks = _CHUNK.findall(self._spaced(text))
        pieces = itertools.chain.from_iterable(map(self._pieces, chunks))
        return [*filter(None, [self._opening]), *pieces]

    def ids_of(self, pieces: Iterable[str]) -> list[int]:
        """Returns the id of each piece, UNK for those that the vocabulary lacks."""
        return [self._ids.get(piece, SpecialIds.UNK) for piece in pieces]

    def surfaces(self, text: str) -> list[str]:
        """Returns the part of the text for which each of its ids stands.

        A character of several pieces is that of the first of them, and the others have none.
        """
        opening = [""] if self._opening else []
        found = _texts(map(_bytes, self.split(text)[len(opening) :]))
        if self._spaced(text) != text:
            found[0] = found[0].removeprefix(" ")
        return [*opening, *found]

    def as_unknown(self, text: str) -> list[str]:
        """Returns what `decode` takes for each id of the text, were it unknown: its part."""
        return self.surfaces(text)

    def decode(
        self, ids: Iterable[SupportsIndex], *, unknown: Iterable[str | None] = ()
    ) -> str:
        """Detokenization: returns the text of ids up to the first EOS, without PAD and BOS.

        Args:
          ids: The ids; bytes that are no UTF-8 are written as U+FFFD.
          unknown: Texts for the unknown ones among them, in order; None for `<unk>`.
        """
        given = iter(unknown)
        parts = [
            given_or_mark(next(given, None)).encode()
            if index == SpecialIds.UNK
            else _bytes(self.symbols[index - SpecialIds.COUNT])
            for index in content_ids(ids)
            if index not in self.silent_ids
        ]
        text = b"".join(parts).decode(errors="replace")
        return text.removeprefix(" ") if self._adds_space else text

    def tokens(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """Returns a printable piece for each id, including special ones.

        Silent symbols end with a space, by which they are no part of a word.
        """
        ids = [*map(int, ids)]
        names = {
            place: SPECIAL_TOKENS[index]
            if index < SpecialIds.COUNT
            else self.symbols[index - SpecialIds.COUNT] + SPACE
            for place, index in enumerate(ids)
            if index < SpecialIds.COUNT or index in self.silent_ids
        }
        texts = _texts(
            b"" if place in names else _bytes(self.symbols[index - SpecialIds.COUNT])
            for place, index in enumerate(ids)
        )
        return [names.get(place, text.replace(" ", SPACE)) for place, text in enumerate(texts)]

    def save(self, directory: str | Path) -> None:
        """Writes `vocabulary.json`."""
        write_record(directory, {
            "kind": BYTE_PAIRS, "symbols": self.symbols, "merges": self._merges,
            "silent": self._silent, "opening": self._opening, "adds_space": self._adds_space,
        })  # fmt: skip

    @classmethod
    def load(cls, directory: str | Path) -> "BytePairVocabulary":
        """Reads what `save` wrote.

        Raises:
          DataError: If it is missing or damaged.
        """
        record = read_record(directory)
        names = ("symbols", "merges", "silent", "opening", "adds_space")
        try:
            return cls(**{name: record[name] for name in names})
        except DataError as error:
            raise DataError(f"{Path(directory) / RECORD_FILE}: {error}") from None

    def _spaced(self, text: str) -> str:
        """Returns the text as it is cut: with a space before it, where one is added."""
        return f" {text}" if self._adds_space and text and not text.startswith(" ") else text

    def _pieces(self, chunk: str) -> tuple[str, ...]:
        """Returns the pieces of a chunk, which are remembered."""
        found = self._known.get(chunk)
        if found is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            found = self._known[chunk] = self._merged(chunk)
        return found

    def _merged(self, chunk: str) -> tuple[str, ...]:
        """Joins the bytes of a chunk pair by pair, of all pairs the one learnt first."""
        pieces = [ALPHABET[byte] for byte in chunk.encode(errors="replace")]
        while len(pieces) > 1:
            pairs = [*itertools.pairwise(pieces)]
            pair = min(pairs, key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if pair not in self._ranks:
                break
            joined: list[str] = []
            rest = iter(pieces)
            for piece in rest:
                if joined and (joined[-1], piece) == pair:
                    joined[-1] = "".join(pair)
                else:
                    joined.append(piece)
            pieces = joined
        return tuple(pieces)


def _bytes(piece: str) -> bytes:
    """Returns the bytes that a piece stands for; those of its own text if it is none of bytes."""
    if all(character in _BYTES for character in piece):
        return bytes(_BYTES[character] for character in piece)
    return piece.encode(errors="replace")


def _texts(pieces: Iterable[bytes]) -> list[str]:
    """Returns the characters that begin in each of the pieces of a text."""
    pieces = [*pieces]
    owners = [place for place, piece in enumerate(pieces) for _ in piece]  # of every byte
    texts, start = [""] * len(pieces), 0
    for character in b"".join(pieces).decode(errors="surrogateescape"):
        is_whole = not "\udc80" <= character <= "\udcff"  # as bytes that are no UTF-8 become
        texts[owners[start]] += character if is_whole else "\ufffd"
        start += len(character.encode(errors="surrogateescape"))
    return texts
