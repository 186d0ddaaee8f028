"""Unigram models of `tokenizer.json`, as the sentencepiece models that they were made of.

A folder may hold nothing else of its tokenizer. The scores of pieces and the table by which texts
are normalised are the same, and so are the pieces of a text.

Source: Kudo 2018, "Subword regularization", section 3.2.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sentencepiece import sentencepiece_model_pb2

from attention_jax.data.text.characters import SPACE
from attention_jax.errors import UserError
from attention_jax.json_files import Maybe
from attention_jax.runs.foreign.folder import Folder

FILE = "tokenizer.json"
_SHAPE = {
    "added_tokens": [{"content": str, "id": int, "special": bool}],
    "normalizer": object,
    "pre_tokenizer": {"type": str},
    "model": {
        "type": {"Unigram"}, "unk_id": int, "vocab": [[(str, float)]],
        "byte_fallback": Maybe(bool),
    },
}  # fmt: skip
_NORMALIZERS = ("Precompiled", "Replace", "Strip")  # the last two of spaces, as sentencepiece does
_CUTTERS = ("WhitespaceSplit", "Metaspace")


class Unigram(NamedTuple):
    """Unigram model of another program.

    Attributes:
      model: As sentencepiece's file of it.
      ids: The id of each piece and of each special symbol.
      unknown: The id of what it lacks.
    """

    model: bytes
    ids: Mapping[str, int]
    unknown: int


def read_unigram(folder: Folder) -> Unigram:
    """Reads the model in `tokenizer.json`.

    Raises:
      UserError: If it is missing, or cuts texts in a way that sentencepiece does not.
    """
    found, path = folder.json(FILE, _SHAPE), folder.path / FILE
    pieces, unknown = found["model"]["vocab"], found["model"]["unk_id"]
    for piece in pieces:
        if [*map(type, piece)] not in ([str, float], [str, int]):
            raise UserError(f"{path}: model.vocab: expected pieces with scores, found {piece}")
    if not 0 <= unknown < len(pieces):
        raise UserError(f"{path}: model.unk_id: expected below {len(pieces)}, found {unknown}")
    if found["model"].get("byte_fallback"):
        raise UserError(f"{path}: model.byte_fallback: expected false, found true")
    _check_cutting(found["pre_tokenizer"], str(path))
    added = {each["content"]: each["id"] for each in found["added_tokens"]}
    proto = sentencepiece_model_pb2.ModelProto()
    kinds = proto.SentencePiece
    for index, (piece, score) in enumerate(pieces):
        kind = kinds.CONTROL if piece in added else kinds.NORMAL
        proto.pieces.add(
            piece=piece, score=score, type=kinds.UNKNOWN if index == unknown else kind
        )
    proto.trainer_spec.model_type = proto.trainer_spec.UNIGRAM
    proto.normalizer_spec.precompiled_charsmap = _table(found["normalizer"], str(path))
    ids = {piece: index for index, (piece, _) in enumerate(pieces)}
    return Unigram(proto.SerializeToString(), {**ids, **added}, unknown)


def _table(normalizer: Any, path: str) -> bytes:
    """Returns the table of characters that are replaced; an empty one for none."""
    table = b""
    for part in _parts(normalizer, "normalizers"):
        if part.get("type") not in _NORMALIZERS:
            known = ", ".join(_NORMALIZERS)
            raise UserError(f"{path}: normalizer: expected {known} or none, found {part}"[:200])
        if part["type"] == "Precompiled":
            try:
                table = base64.b64decode(part.get("precompiled_charsmap") or "", validate=True)
            except (binascii.Error, TypeError, ValueError):
                raise UserError(f"{path}: normalizer: expected base64, found another") from None
    return table


def _check_cutting(cutter: Any, path: str) -> None:
    """Raises `UserError` unless spaces alone separate words, and each begins with one."""
    parts = [*_parts(cutter, "pretokenizers")]
    kinds = [part.get("type") for part in parts]
    last = parts[-1] if parts else {}
    is_known = {*kinds} <= {*_CUTTERS} and kinds[-1:] == ["Metaspace"]
    adds = last.get("prepend_scheme", "always") == "always" and last.get("add_prefix_space", True)
    if not is_known or not adds or last.get("replacement", SPACE) != SPACE:
        raise UserError(
            f"{path}: pre_tokenizer: expected words that each begin with {SPACE!r} (Metaspace), "
            f"found {cutter}"[:300]
        )


def _parts(record: Any, name: str) -> Iterator[Mapping[str, Any]]:
    """Yields a part of a tokenizer, or the parts of a sequence of them."""
    if isinstance(record, dict):
        inner = record.get(name)
        if record.get("type") == "Sequence" and isinstance(inner, list):
            yield from (each for each in inner if isinstance(each, dict))
        else:
            yield record
