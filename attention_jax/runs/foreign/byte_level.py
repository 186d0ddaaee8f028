"""Byte-level BPE of other programs: `tokenizer.json`, or `vocab.json` and `merges.txt`, as in BART.

What a tokenizer of this kind may also do, such as normalising a text first, is refused: ids would
be others than those that the model was trained on.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from attention_jax.data.text.byte_pairs import BytePairVocabulary
from attention_jax.errors import DataError, UserError
from attention_jax.json_files import Maybe
from attention_jax.runs.foreign.folder import Folder
from attention_jax.runs.foreign.model import names_by_id
from attention_jax.types import SpecialIds

_ONE, _IDS, _MERGES = "tokenizer.json", "vocab.json", "merges.txt"
# As the authors' files have them, which do not say so themselves.
_OPENING, _SPECIAL = "<s>", ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_SHAPE = {
    "added_tokens": [{"content": str, "id": int, "special": bool}],
    "normalizer": object,
    "pre_tokenizer": {
        "type": {"ByteLevel"}, "add_prefix_space": bool, "use_regex": Maybe(bool),
    },
    "post_processor": {"type": {"RobertaProcessing"}, "cls": [(str, int)]},
    "model": {"vocab": {str: int}, "merges": ([str], [[str]])},
}  # fmt: skip
_REFUSED = "dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"


class ByteLevel(NamedTuple):
    """Byte-level BPE as another program has it.

    Attributes:
      ids: The id of each piece and of each special symbol.
      merges: The two pieces of each merge, in the order in which they were learnt.
      special: Symbols that are not written.
      opening: The one of these with which texts begin.
      adds_space: Whether a text that does not begin with a space is given one.
    """

    ids: Mapping[str, int]
    merges: Sequence[Sequence[str]]
    special: Sequence[str]
    opening: str
    adds_space: bool

    def vocabulary(self, folder: Folder, rows: np.ndarray) -> BytePairVocabulary:
        """Builds the vocabulary in the order of ids here; `rows` are those of `Special.rows`.

        A special symbol beyond the model's table, such as the mask of a summariser, is left out: no
        text has it, and no output can.

        Raises:
          UserError: If the id of a piece is not of the model, or a merge or the opening symbol has
            none.
        """
        size = len(rows) - 1
        is_beyond = {name for name in self.special if self.ids.get(name, 0) >= size}
        known = {name: index for name, index in self.ids.items() if name not in is_beyond}
        names = names_by_id(known, size, folder)
        symbols = [names[row] for row in rows[SpecialIds.COUNT :]]
        silent = [name for name in symbols if name in self.special or name not in self.ids]
        try:
            return BytePairVocabulary(
                symbols, self.merges, silent=silent, opening=self.opening,
                adds_space=self.adds_space,
            )  # fmt: skip
        except DataError as error:
            raise UserError(f"{folder.path}: {error}") from None


def read_byte_level(folder: Folder) -> ByteLevel:
    """Reads the tokenizer of a folder.

    Raises:
      UserError: If there is none, or one that cuts texts in another way.
    """
    own = folder.maybe_json("tokenizer_config.json", {"add_prefix_space": bool})
    if not folder.has(_ONE) and folder.has(_IDS):
        ids = folder.json(_IDS, {str: int})
        adds_space = own.get("add_prefix_space", False)
        return ByteLevel(ids, _merges(folder), _SPECIAL, _OPENING, adds_space)
    path = folder.path / _ONE
    kind = folder.json(_ONE, {"model": {"type": str}})["model"]["type"]
    if kind != "BPE":
        raise UserError(f"{path}: model.type: expected BPE, which joins bytes, found {kind!r}")
    found = folder.json(_ONE, _SHAPE)
    _check(found, str(path))
    model, cut = found["model"], found["pre_tokenizer"]
    merges = [each.split(" ") if isinstance(each, str) else each for each in model["merges"]]
    added = {each["content"]: each["id"] for each in found["added_tokens"]}
    return ByteLevel(
        {**model["vocab"], **added}, merges, [*added], str(found["post_processor"]["cls"][0]),
        own.get("add_prefix_space", cut["add_prefix_space"]),
    )  # fmt: skip


def _check(found: Mapping[str, Any], path: str) -> None:
    """Raises `UserError` for what would cut a text in another way."""
    further = {f"model.{name}": found["model"].get(name) for name in (*_REFUSED, "ignore_merges")}
    for name, value in {"normalizer": found["normalizer"], **further}.items():
        if value:
            raise UserError(f"{path}: {name}: expected none, found {str(value)[:60]}")
    if not found["pre_tokenizer"].get("use_regex", True):
        raise UserError(f"{path}: pre_tokenizer.use_regex: expected true, found false")
    for each in found["added_tokens"]:
        if not each["special"]:
            raise UserError(
                f"{path}: added_tokens: expected special symbols, which no text has, found "
                f"{each['content']!r}"
            )


def _merges(folder: Folder) -> list[list[str]]:
    """Reads merges.txt: two pieces a line, below a line of the version."""
    try:
        lines = folder.content(_MERGES).decode().split("\n")
    except UnicodeDecodeError:
        raise UserError(f"{folder.path / _MERGES}: expected UTF-8, found something else") from None
    merges = []
    for number, line in enumerate(lines, start=1):
        if not line or line.startswith("#version"):
            continue
        merges.append(line.split(" "))
        if len(merges[-1]) != 2:
            raise UserError(
                f"{folder.path / _MERGES}:{number}: expected two pieces, found {line!r}"
            )
    return merges
