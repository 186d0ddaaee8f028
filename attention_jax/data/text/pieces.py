"""Pieces: a vocabulary that another program has made, by a sentencepiece model and a list of ids.

The model cuts a text into pieces, and the list says which id each piece has; pieces that it lacks
are unknown, whatever ids the model has for them. If codes of languages such as `>>fra<<` are among
the pieces, a text may begin with that of the language that it is to be translated into.

What the model normalises, such as ligatures and repeated spaces, decoding does not bring back.

Source: Kudo and Richardson 2018, "SentencePiece"; Johnson et al. 2017, section 3, for codes of
languages.
"""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import SupportsIndex

import sentencepiece

from attention_jax.data.text.characters import SPACE
from attention_jax.data.text.vocabulary import (
    PIECES,
    SUBWORDS,
    content_ids,
    filled_symbols,
    printable_symbols,
    read_model,
    write_model,
)
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

MODEL_FILE = "pieces.model"
_CODE = ">>", "<<"  # around the code of a language


class PieceVocabulary:
    """Pieces of a given sentencepiece model, with given ids.

    Attributes:
      symbols: The pieces by their ids, special ones left out.
      given_words: Whether texts in a script that writes no spaces came with some; not known here.
    """

    kind = SUBWORDS
    given_words = False

    def __init__(self, model: bytes, symbols: Sequence[str]):
        """Makes the vocabulary; raises `DataError` if the model is none, or a piece has two ids."""
        self._model, self.symbols = model, tuple(symbols)
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            self._processor.encode("a")
        except (RuntimeError, TypeError) as error:
            reason = " ".join(str(error).split())[-120:]
            message = f"expected a sentencepiece model, found something else ({reason})"
            raise DataError(message) from None
        known = enumerate(self.symbols, start=SpecialIds.COUNT)
        self._ids = {symbol: index for index, symbol in known}
        self._has_codes = any(map(_is_code, self.symbols))
        if len(self._ids) < len(self.symbols):
            raise DataError("expected every piece once, found one with two ids")

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""
        return SpecialIds.COUNT + len(self.symbols)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without BOS and EOS."""
        return self.ids_of(self.split(text))

    def split(self, text: str) -> list[str]:
        """Returns the piece of each id of a text."""
        code = self._code(text)
        return [*filter(None, [code]), *self._processor.encode(text[len(code) :], out_type=str)]

    def ids_of(self, pieces: Iterable[str]) -> list[int]:
        """Returns the id of each piece, UNK for those that the vocabulary lacks."""
        return [self._ids.get(piece, SpecialIds.UNK) for piece in pieces]

    def surfaces(self, text: str) -> list[str]:
        """Returns the part of the text for which each of its ids stands, unknown ones included."""
        code = self._code(text)
        rest = text[len(code) :]
        offsets = self._processor.encode(rest, return_type="offset_mapping")["offsets"]
        # From one beginning to the next: what was normalised away goes with the piece before.
        begins = [0, *(begin for begin, _ in offsets[1:]), len(rest)] if offsets else []
        found = [rest[begin:end] for begin, end in itertools.pairwise(begins)]
        return [*filter(None, [code]), *found]

    def as_unknown(self, text: str) -> list[str]:
        """Returns what `decode` takes for each id of the text, were it unknown: its piece."""
        return self.split(text)

    def decode(
        self, ids: Iterable[SupportsIndex], *, unknown: Iterable[str | None] = ()
    ) -> str:
        """Detokenization: returns the text of ids up to the first EOS, without PAD and BOS.

        Args:
          ids: The ids.
          unknown: Texts for the unknown ones among them, in order; None for `<unk>`.
        """
        pieces = filled_symbols(content_ids(ids), self._symbol, unknown)
        return "".join(pieces).replace(SPACE, " ").strip(" ")

    def tokens(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """Returns a printable piece for each id, including special ones."""
        return printable_symbols(ids, self._symbol)

    def save(self, directory: str | Path) -> None:
        """Writes `pieces.model`, then `vocabulary.json` with its checksum."""
        record = {"kind": PIECES, "symbols": self.symbols}
        write_model(Path(directory) / MODEL_FILE, self._model, record)

    @classmethod
    def load(cls, directory: str | Path) -> "PieceVocabulary":
        """Reads what `save` wrote.

        Raises:
          DataError: If the model is missing or damaged.
        """
        path = Path(directory) / MODEL_FILE
        model, record = read_model(path)
        try:
            return cls(model, record["symbols"])
        except DataError as error:
            raise DataError(f"{path}: {error}") from None

    def _symbol(self, index: int) -> str:
        return self.symbols[index - SpecialIds.COUNT]

    def _code(self, text: str) -> str:
        """Returns the code of a language with which the text begins; an empty text for none."""
        code = "".join(text.partition(_CODE[1])[:2])
        return code if self._has_codes and _is_code(code) else ""


def _is_code(piece: str) -> bool:
    return piece.startswith(_CODE[0]) and piece.endswith(_CODE[1])


def share_ids(one: object, other: object) -> bool:
    """Says whether each id stands for the same symbol on both sides, whatever cuts their texts."""
    if one is other:
        return True
    both = isinstance(one, PieceVocabulary) and isinstance(other, PieceVocabulary)
    return both and one.symbols == other.symbols
