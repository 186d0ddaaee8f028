"""Subwords: byte-pair encoding (BPE) by sentencepiece, lossless.

Text is not normalised, so decoding returns every character that the training text contains.
sentencepiece reserves some strings for itself, which texts may contain too. They are kept apart by
code points that Unicode leaves to programs and texts do not have: the special tokens' names begin
with one, because nothing is learnt from a text that spells such a name; and the characters U+2581
(sentencepiece's space), U+2585 and NUL of texts are replaced by others. A text that does have one
of these code points spells it with two characters, an escape and a digit. In models of an earlier
version the special tokens are named `<unk>` and the like, and U+2581 is read as a space.

Source: Sennrich, Haddow and Birch 2016, "Neural Machine Translation of Rare Words with Subword
Units", section 3.2; Kudo and Richardson 2018, "SentencePiece".
"""

import io
import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import SupportsIndex

import sentencepiece

from attention_jax.data.text.characters import SPACE
from attention_jax.data.text.scripts import are_given_in_words
from attention_jax.data.text.vocabulary import (
    SPECIAL_TOKENS,
    SUBWORDS,
    content_ids,
    filled_symbols,
    printable_symbols,
    read_model,
    write_model,
)
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

MODEL_FILE = "subwords.model"
_MAX_LINE_BYTES = 65_536  # sentencepiece silently skips longer lines; its default is 4192
_NAMES = tuple(f"\ufdd0{token}" for token in SPECIAL_TOKENS)
_ESCAPE = "\ufdd4"
_TO_PRIVATE = str.maketrans(
    {SPACE: "\ufdd1", "\u2585": "\ufdd2", "\0": "\ufdd3"}
    | {chr(0xFDD0 + digit): f"{_ESCAPE}{digit}" for digit in range(5)}
)
_FROM_PRIVATE = {private: chr(code) for code, private in _TO_PRIVATE.items()}
_PRIVATE = re.compile(f"{_ESCAPE}[0-4]|[\ufdd1-\ufdd3]")


class SubwordVocabulary:
    """Byte-pair encoding (BPE): a trained sentencepiece model as a vocabulary.

    Attributes:
      given_words: Whether its texts, in a script that writes no spaces between words, came with
        spaces between them.
    """

    kind = SUBWORDS

    def __init__(self, model: bytes, given_words: bool = False):
        self.given_words = given_words
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        names = map(self._processor.id_to_piece, range(self._processor.get_piece_size()))
        is_private = _NAMES[SpecialIds.UNK] in names  # else a model of an earlier version
        self._to_model = _TO_PRIVATE if is_private else {}
        self._from_model = _from_private if is_private else str

    @classmethod
    def train(cls, texts: Iterable[str], size: int) -> "SubwordVocabulary":
        """Byte-pair encoding (BPE): learns merges from the training texts.

        Args:
          texts: Training texts of one side, or of both for a joint vocabulary.
          size: Maximum number of ids, including special ones; small texts give fewer.

        Raises:
          DataError: If not even the characters of the texts fit into `size`.
        """
        # Twice through the texts: for merges, and for whether spaces were given.
        model, texts = io.BytesIO(), list(texts)
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(text.translate(_TO_PRIVATE) for text in texts),
                model_writer=model,
                model_type="bpe",
                vocab_size=size,
                hard_vocab_limit=False,
                # The next three make it lossless: no character is dropped or normalised.
                character_coverage=1.0,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                max_sentence_length=_MAX_LINE_BYTES,
                pad_id=SpecialIds.PAD,
                bos_id=SpecialIds.BOS,
                eos_id=SpecialIds.EOS,
                unk_id=SpecialIds.UNK,
                pad_piece=_NAMES[SpecialIds.PAD],
                bos_piece=_NAMES[SpecialIds.BOS],
                eos_piece=_NAMES[SpecialIds.EOS],
                unk_piece=_NAMES[SpecialIds.UNK],
                minloglevel=2,
            )
        except RuntimeError as error:
            raise DataError(_explanation(str(error), size)) from None
        return cls(model.getvalue(), are_given_in_words(texts))

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without BOS and EOS."""
        return self._processor.encode(text.translate(self._to_model))

    def split(self, text: str) -> list[str]:
        """Returns the piece of each id of a text."""
        return self._processor.encode(text.translate(self._to_model), out_type=str)

    def ids_of(self, pieces: Iterable[str]) -> list[int]:
        """Returns the id of each piece, UNK for those that the vocabulary lacks."""
        return [self._processor.piece_to_id(piece) for piece in pieces]

    def surfaces(self, text: str) -> list[str]:
        """Returns the part of the text for which each of its ids stands, unknown ones included."""
        # The pieces of a text, joined, are the text: a piece's place follows from the lengths.
        pieces = self.split(text)
        ends = itertools.accumulate(map(len, pieces), initial=0)
        spaced = f" {text}"  # sentencepiece puts a space before every text
        places = [
            place
            for place, character in enumerate(spaced)
            for _ in character.translate(self._to_model)  # one, or two where it is escaped
        ]
        places.append(len(spaced))
        return [spaced[places[start] : places[end]] for start, end in itertools.pairwise(ends)]

    def as_unknown(self, text: str) -> list[str]:
        """Returns what `decode` takes for each id of the text, were it unknown: its part."""
        return self.surfaces(text)

    def decode(
        self, ids: Iterable[SupportsIndex], *, unknown: Iterable[str | None] = ()
    ) -> str:
        """Detokenization: returns the text of ids up to the first EOS, without PAD and BOS.

        Args:
          ids: The ids.
          unknown: Texts for the unknown ones among them, in order; None for `<unk>`.
        """
        content = content_ids(ids)
        if SpecialIds.UNK not in content:
            return self._from_model(self._processor.decode(content))
        # Joined here, because sentencepiece puts spaces around unknown ids, even inside of a word.
        pieces = filled_symbols(
            content,
            lambda index: self._processor.id_to_piece(index).replace(SPACE, " "),
            (text and text.translate(self._to_model) for text in unknown),
        )
        return self._from_model("".join(pieces)).removeprefix(" ")

    def tokens(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """Returns a printable piece for each id, including special ones."""
        return printable_symbols(
            ids, lambda index: self._from_model(self._processor.id_to_piece(index))
        )

    def save(self, directory: str | Path) -> None:
        """Writes `subwords.model`, then `vocabulary.json` with its checksum."""
        record = {"kind": SUBWORDS} | ({"given_words": True} if self.given_words else {})
        write_model(Path(directory) / MODEL_FILE, self._model, record)

    @classmethod
    def load(cls, directory: str | Path) -> "SubwordVocabulary":
        """Reads what `save` wrote.

        Raises:
          DataError: If the model is missing or damaged.
        """
        path = Path(directory) / MODEL_FILE
        model, record = read_model(path)
        try:
            found = cls(model, record.get("given_words", False))
            found.tokens(range(found.size))  # damaged pieces would otherwise show while decoding
        except (RuntimeError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())[-120:]
            raise DataError(
                f"{path}: expected a sentencepiece model, found a damaged one ({reason})"
            ) from None
        found._check(path)
        return found

    def _check(self, path: Path) -> None:
        """Raises `DataError` unless the special tokens have the ids of `SpecialIds`."""
        has = self._processor
        found = (has.pad_id(), has.bos_id(), has.eos_id(), has.unk_id())
        expected = (SpecialIds.PAD, SpecialIds.BOS, SpecialIds.EOS, SpecialIds.UNK)
        if found != expected:
            raise DataError(
                f"{path}: expected a sentencepiece model that numbers padding, begin, end and "
                f"unknown {expected}, found {found}"
            )


def _from_private(text: str) -> str:
    """Returns a text of the model with the characters that it replaces or escapes put back."""
    return _PRIVATE.sub(lambda found: _FROM_PRIVATE[found[0]], text)


def _explanation(message: str, size: int) -> str:
    """Translates an error of sentencepiece into one about the config."""
    too_small = re.search(r"required_chars\. \d+ vs (\d+)", message)
    if too_small:
        needed = too_small.group(1)
        return f"subwords.size: expected at least {needed}, one per character, found {size}"
    reason = " ".join(message.split())[-200:]
    return f"subwords.size: no vocabulary of {size} could be learnt ({reason})"
