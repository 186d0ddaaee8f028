"""Subwords: byte-pair encoding by sentencepiece, without loss.

Text is not normalised, so decoding gives back every character that the training side holds, but
for the sign that stands for a space in subwords: in a text it is read as one, and a space written.
Nor are texts for it that spell the special tokens, `<unk>` and the like, or have U+2585, which
sentencepiece keeps for itself: a line of training with it teaches nothing.

Source: Sennrich, Haddow and Birch 2016, "Neural Machine Translation of Rare Words with Subword
Units", section 3.2; Kudo and Richardson 2018, "SentencePiece".
"""

import hashlib
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import SupportsIndex

import sentencepiece

from attention_jax.data.text.characters import SPACE
from attention_jax.data.text.vocabulary import (
    SUBWORDS,
    content_ids,
    read_record,
    write_atomically,
    write_record,
)
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

MODEL_FILE = "subwords.model"
_MAX_LINE_BYTES = 65_536


class SubwordVocabulary:
    """A trained sentencepiece model."""

    kind = SUBWORDS

    def __init__(self, model: bytes):
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    @classmethod
    def train(cls, texts: Iterable[str], size: int) -> "SubwordVocabulary":
        """Learns merges from the training texts.

        Args:
          texts: Texts of the training side, or of both sides for a joint vocabulary.
          size: Ids at most, the special ones included; fewer where the texts are too small.

        Raises:
          DataError: If not even the characters of the texts fit into `size`.
        """
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts),
                model_writer=model,
                model_type="bpe",
                vocab_size=size,
                hard_vocab_limit=False,
                character_coverage=1.0,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                max_sentence_length=_MAX_LINE_BYTES,
                pad_id=SpecialIds.PAD,
                bos_id=SpecialIds.BOS,
                eos_id=SpecialIds.EOS,
                unk_id=SpecialIds.UNK,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise DataError(_explanation(str(error), size)) from None
        return cls(model.getvalue())

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without any special ones added."""
        return self._processor.encode(text)

    def surfaces(self, text: str) -> list[str]:
        """Returns the part of a text that each of its ids stands for, unknown ones included."""
        pieces = self._processor.encode(text, out_type=str)
        return [piece.replace(SPACE, " ") for piece in pieces]

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """Returns the text of ids up to the first EOS, special ids left out."""
        return self._processor.decode(content_ids(ids))

    def tokens(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """Returns one printable piece per id, special ids included."""
        return [self._processor.id_to_piece(int(index)) for index in ids]

    def save(self, directory: str | Path) -> None:
        """Writes `subwords.model`, then `vocabulary.json` with its checksum."""
        write_atomically(Path(directory) / MODEL_FILE, self._model)
        digest = hashlib.sha256(self._model).hexdigest()
        write_record(directory, {"kind": SUBWORDS, "model_sha256": digest})

    @classmethod
    def load(cls, directory: str | Path) -> "SubwordVocabulary":
        """Reads what `save` wrote.

        Raises:
          DataError: If the model is missing or damaged.
        """
        path = Path(directory) / MODEL_FILE
        try:
            model = path.read_bytes()
        except OSError:
            raise DataError(f"{path}: expected a sentencepiece model, found none") from None
        if hashlib.sha256(model).hexdigest() != read_record(directory)["model_sha256"]:
            raise DataError(f"{path}: the model does not match its checksum, the file is damaged")
        if not model:
            raise DataError(f"{path}: expected a sentencepiece model, found an empty file")
        try:
            found = cls(model)
            found.tokens(range(found.size))  # garbage in them would be met while decoding
        except (RuntimeError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())[-120:]
            raise DataError(
                f"{path}: expected a sentencepiece model, found a damaged one ({reason})"
            ) from None
        found._check(path)
        return found

    def _check(self, path: Path) -> None:
        """Raises DataError, naming the file, if the special tokens have other numbers than ours."""
        has = self._processor
        found = (has.pad_id(), has.bos_id(), has.eos_id(), has.unk_id())
        expected = (SpecialIds.PAD, SpecialIds.BOS, SpecialIds.EOS, SpecialIds.UNK)
        if found != expected:
            raise DataError(
                f"{path}: expected a sentencepiece model that numbers padding, begin, end and "
                f"unknown {expected}, found {found}"
            )


def _explanation(message: str, size: int) -> str:
    too_small = re.search(r"required_chars\. \d+ vs (\d+)", message)
    if too_small:
        needed = too_small.group(1)
        return f"subwords.size: expected at least {needed}, one per character, found {size}"
    reason = " ".join(message.split())[-200:]
    return f"subwords.size: no vocabulary of {size} could be learnt ({reason})"
