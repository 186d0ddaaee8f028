"""Weights as safetensors files: export and import of parameters for other programs.

A tensor is named by its place in the model, with dots between: the parameter `params["encoder"]
["layer_0"]["feed_forward"]["hidden"]` is `encoder.layer_0.feed_forward.hidden`. Kernels are
`inputs x outputs`, so that a layer is `x @ kernel`; those of heads have a leading axis of heads.
`docs/weights.md` lists the Transformer's.
"""

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from attention_jax.data.lexicon import LEXICON_FILE
from attention_jax.errors import UserError
from attention_jax.runs.files import replacing
from attention_jax.runs.hashes import hash_files
from attention_jax.types import Params
from attention_jax.updates.state import TrainState

_CONFIG, _VOCABULARIES = "config", "vocabularies"
IDS = "ids"  # a hash of the vocabularies without what lies beside them, where both are there
_FLOATS = ("F64", "F32", "F16", "BF16")


def save_weights(
    params: Params,
    path: str | os.PathLike,
    config: Mapping[str, Any] | None = None,
    vocabularies: str | None = None,
    about: Mapping[str, str] | None = None,
) -> None:
    """Exports parameters to a safetensors file.

    Args:
      params: The parameters.
      path: The file, replaced atomically.
      config: The config of the model, kept as JSON in the file's metadata.
      vocabularies: A hash of the vocabularies, kept in the metadata too.
      about: Further texts for the metadata, by name.

    Raises:
      UserError: If the file cannot be written.
    """
    tensors = {name: np.asarray(leaf) for name, leaf in named_leaves(params).items()}
    metadata = {} if config is None else {_CONFIG: json.dumps(config)}
    if vocabularies is not None:
        metadata[_VOCABULARIES] = vocabularies
    try:
        with replacing(path) as partial:
            partial.write_bytes(save(tensors, {"format": "np", **metadata, **(about or {})}))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from None


def load_weights(path: str | os.PathLike, like: Params) -> Params:
    """Imports parameters from a safetensors file.

    Args:
      path: The file.
      like: The parameters, or their shapes, of the model that is to have them.

    Returns:
      Parameters of the same structure and types.

    Raises:
      UserError: If the file cannot be read; if tensors are missing, unknown, of another shape or
        of no type of floats; or if numbers are not finite.
    """
    expected = named_leaves(like)
    try:
        with safe_open(str(path), framework="np") as file:
            _check_names(path, set(file.keys()), expected.keys())
            tensors = [read_tensor(path, file, name, leaf) for name, leaf in expected.items()]
    except FileNotFoundError:
        raise UserError(f"{path}: expected a safetensors file, found none") from None
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path} is no safetensors file: {error}") from None
    return jax.tree.structure(like).unflatten(tensors)


def _check_names(path: str | os.PathLike, found: Set[str], expected: Set[str]) -> None:
    for what, names in (
        ("missing", expected - found),
        ("not of this model", found - expected),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise UserError(f"{path}: tensor {min(names)!r}{more} {what}")


def read_tensor(path: str | os.PathLike, file: Any, name: str, leaf: Any) -> np.ndarray:
    """Reads one tensor of an open file, as the type of a leaf of the parameters.

    Its type is checked first, since NumPy cannot read every type.

    Raises:
      UserError: If it is of another shape or of no type of floats, or numbers are not finite.
    """
    where, header = f"{path}: tensor {name!r}", file.get_slice(name)
    shape, kind = tuple(header.get_shape()), header.get_dtype()
    if shape != tuple(leaf.shape):
        raise UserError(f"{where}: expected shape {tuple(leaf.shape)}, found {shape}")
    if kind not in _FLOATS:
        raise UserError(f"{where}: expected numbers of type {', '.join(_FLOATS)}, found {kind}")
    with np.errstate(over="ignore"):  # too large for the type becomes inf, which is refused below
        tensor = file.get_tensor(name).astype(leaf.dtype)
    is_finite = np.isfinite(tensor)
    if not is_finite.all():
        found = tensor[~is_finite][0]
        raise UserError(f"{where}: expected finite numbers of {leaf.dtype}, found {found}")
    return tensor


def starting_from(
    start: Callable[[jax.Array], TrainState], loaded: Params, like: TrainState
) -> Callable[[jax.Array], TrainState]:
    """Wraps `start` so that training begins from pretrained weights.

    Args:
      start: Draws a state from a key.
      loaded: The pretrained parameters, on the host.
      like: Shapes and placement of the state.
    """

    def begin(rng: jax.Array) -> TrainState:
        state = start(rng)
        place = functools.partial(jax.tree.map, lambda leaf, to: jax.device_put(leaf, to.sharding))
        average = state.average
        if average is not None:  # a copy, since the first update donates both trees' buffers
            average = place(jax.tree.map(np.copy, loaded), like.average)
        return dataclasses.replace(state, params=place(loaded, like.params), average=average)

    return begin


def initial_weights(path: str, like: Params, vocabularies: Path) -> Params:
    """Reads the pretrained weights that a training is to start from.

    Args:
      path: The file.
      like: The parameters, or their shapes, of the model.
      vocabularies: The folder of the vocabularies that the training uses.

    Raises:
      UserError: As `load_weights`; or if the file was written with other vocabularies, in which
        the same ids mean other tokens.
    """
    loaded = load_weights(path, like)
    metadata = metadata_of(path)
    known = metadata.get(IDS, metadata.get(_VOCABULARIES))
    # A lexicon beside the vocabularies changes nothing of what ids mean.
    if known not in (None, *(hash_files(vocabularies, name) for name in (None, LEXICON_FILE))):
        raise UserError(
            f"config.training.initial_weights: expected parameters for the vocabularies in "
            f"{vocabularies}, found those of others in {path}; start in a new --workdir, with "
            "config.data.vocabularies naming vocab/ of their run"
        )
    return loaded


def metadata_of(path: str | os.PathLike) -> dict[str, str]:
    """Returns the texts that a safetensors file, which has been read already, holds by name."""
    with safe_open(str(path), framework="np") as file:
        return file.metadata() or {}


def named_leaves(params: Params) -> dict[str, Any]:
    """Returns the leaves by their dotted names, in the order of the tree."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    return {".".join(str(entry.key) for entry in path): leaf for path, leaf in leaves}
