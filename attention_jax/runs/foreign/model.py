"""A foreign model in the parts of this package: its config, its parameters and its vocabularies.

Every vocabulary here begins with PAD, BOS, EOS and UNK. Another program's ids are put in this
order, and what starts its decoder becomes BOS: a symbol of its own, with the embedding of that
which the other program starts with, be that padding or the end. As no output has a BOS, its bias is
lower by `NEVER`, by which its probability is nothing in float32 and all others are what they were.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from attention_jax.data.text.pieces import PieceVocabulary
from attention_jax.data.text.vocabulary import Vocabulary
from attention_jax.errors import DataError, UserError
from attention_jax.runs.foreign.folder import Folder
from attention_jax.types import Params, SpecialIds

NEVER = 40.0  # exp(-40) is 4e-18, and yet label smoothing can bear it
_GENERATION = "generation_config.json"
_SEARCH = {
    "num_beams": int, "length_penalty": float, "max_length": int, "min_length": int,
    "no_repeat_ngram_size": int, "forced_bos_token_id": int,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ForeignModel:
    """A foreign model, translated.

    Attributes:
      model: The config of the model here, as `config.model` holds it.
      params: Its parameters, arrays on the host.
      source: Vocabulary of sources.
      target: Vocabulary of targets; the same object if it is joint.
      search: How outputs are searched for, as `config.search` holds it.
    """

    model: Mapping[str, Any]
    params: Params
    source: Vocabulary
    target: Vocabulary
    search: Mapping[str, Any]


class Special(NamedTuple):
    """Special ids of another program.

    Attributes:
      pad: Padding.
      start: What the decoder is given first.
      end: The end of a text.
      unknown: What the vocabulary lacks.
    """

    pad: int
    start: int
    end: int
    unknown: int

    def rows(self, size: int) -> np.ndarray:
        """Returns, by the ids here, which id of another program each was, of `size` in all.

        Raises:
          UserError: If a special id is none of these, or two are the same.
        """
        own = self.pad, self.end, self.unknown
        if len({*own}) < len(own) or not all(0 <= index < size for index in self):
            raise UserError(
                f"config.json: expected special ids below {size}, those of padding, end and "
                f"unknown words different, found {self._asdict()}"
            )
        others = np.setdiff1d(np.arange(size), own)
        return np.concatenate([self, others])


def settings(folder: Folder, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Reads config.json: the fields in `defaults`, of their types, which are taken if it has none.

    Raises:
      UserError: If it is missing, or a field is of another type.
    """
    shape = {name: _optional(type(value)) for name, value in defaults.items()}
    found = folder.maybe_json("config.json", shape)
    given = {name: value for name, value in found.items() if value is not None}
    return {**defaults, **{name: given[name] for name in defaults if name in given}}


def name_here(config: Mapping[str, Any], field: str, names: Mapping[str, str]) -> str:
    """Returns what the value of a field of config.json is called here, by the `names` of all.

    Raises:
      UserError: If it has no name here.
    """
    if config[field] not in names:
        known = ", ".join(names)
        raise UserError(
            f"config.json: {field}: expected one of {known}, found {config[field]!r}"
        )
    return names[config[field]]


def transformer_config(
    depth: int,
    encoder: Mapping[str, Any],
    attention: Mapping[str, Any],
    decoder: Mapping[str, Any],
) -> dict[str, Any]:
    """Transformer: returns the config here of one whose embeddings are of a `depth`.

    The fields of its encoder, its attention and its decoder are given, but for the names of both
    stacks.
    """
    tokens = {"name": "tokens", "embedding_dim": depth}
    return {
        "name": "encoder_decoder",
        "target_embedding_dim": depth,
        "sources": {"source": {"input": tokens, "encoder": {"name": "self_attention", **encoder}}},
        "attention": dict(attention),
        "decoder": {"name": "transformer", **decoder},
    }


def tying(params: Params) -> str:
    """Weight tying: returns which tables are one, as `model.tie_embeddings` says.

    What is tied is among the parameters once: as the embeddings of the target.
    """
    if "source_embedding" not in params:
        return "all"
    return "none" if "output" in params else "target"


def search_of(folder: Folder, rows: np.ndarray) -> dict[str, Any]:
    """Reads how outputs are searched for, from generation_config.json and else config.json.

    Args:
      folder: The folder.
      rows: From `Special.rows`, of targets.

    Raises:
      UserError: If outputs are made to begin with what is no symbol.
    """
    shape = {name: _optional(kind) for name, kind in _SEARCH.items()}
    files = (folder.maybe_json(name, shape) for name in ("config.json", _GENERATION))
    given = {name: value for file in files for name, value in file.items() if value is not None}
    beams, penalty = given.get("num_beams", 1), given.get("length_penalty", 1.0)
    search: dict[str, Any] = {"method": "greedy"}
    if beams > 1:
        search = {"method": "beam", "beam_size": beams}
        # The score is divided by a power of the length; what favours short outputs has no name.
        search |= {"length_alpha": penalty} if penalty > 0 else {"length_normalization": "none"}
    if given.get("max_length", 0) > 1:  # counts the symbol that the decoder starts from
        search |= {"max_length_factor": 0.0, "max_length_constant": given["max_length"] - 1}
    if given.get("min_length", 0) > 1:
        search["min_length_constant"] = given["min_length"] - 1
    if given.get("no_repeat_ngram_size"):
        search["no_repeat_ngram_size"] = given["no_repeat_ngram_size"]
    if (first := given.get("forced_bos_token_id")) is not None:
        found = SpecialIds.COUNT + np.flatnonzero(rows[SpecialIds.COUNT :] == first)
        if not found.size:
            raise UserError(
                f"{folder.path / _GENERATION}: forced_bos_token_id: expected that of a symbol "
                f"which texts may have, found {first}"
            )
        search["first_token"] = int(found[0])
    return search


def output_bias(bias: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Output bias: returns that of each id here, by which no output has a BOS."""
    ordered = bias[rows].astype(np.float32)
    ordered[SpecialIds.BOS] -= NEVER
    return ordered


def piece_vocabulary(
    folder: Folder, name: str, model: bytes, ids: Mapping[str, int], rows: np.ndarray
) -> PieceVocabulary:
    """Builds a vocabulary of a sentencepiece model and the ids that another program gives pieces.

    Args:
      folder: The folder.
      name: The file that the model is of.
      model: The model, as sentencepiece's file of it.
      ids: The other program's id of each piece; those without a piece are named here.
      rows: From `Special.rows`.

    Raises:
      UserError: If it is no such model, or an id is beyond those of the parameters.
    """
    pieces = names_by_id(ids, len(rows) - 1, folder)
    try:
        return PieceVocabulary(model, [pieces[row] for row in rows[SpecialIds.COUNT :]])
    except DataError as error:
        raise UserError(f"{folder.path / name}: {error}") from None


def names_by_id(ids: Mapping[str, int], size: int, folder: Folder) -> Sequence[str]:
    """Returns the symbol of each of `size` ids.

    Raises:
      UserError: If there are other ids, or two symbols have the same.
    """
    names: dict[int, str] = {}
    for name, index in ids.items():
        if not 0 <= index < size:
            raise UserError(
                f"{folder.path}: expected a vocabulary of the {size} symbols of the parameters, "
                f"found {name!r} with id {index}"
            )
        if index in names:
            raise UserError(
                f"{folder.path}: expected an id for each symbol, found {index} for "
                f"{names[index]!r} and {name!r}"
            )
        names[index] = name
    return [names.get(index, f"<unused_{index}>") for index in range(size)]


def _optional(kind: type) -> Any:
    return (kind, None)
