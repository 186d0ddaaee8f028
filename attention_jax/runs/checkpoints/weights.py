"""Parameters as plain safetensors files, for other programs to read and to write.

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

from attention_jax.errors import UserError
from attention_jax.runs.files import replacing
from attention_jax.runs.hashes import hash_files
from attention_jax.types import Params
from attention_jax.updates.state import TrainState

_CONFIG, _VOCABULARIES = "config", "vocabularies"
_FLOATS = ("F64", "F32", "F16", "BF16")


def save_weights(
    params: Params,
    path: str | os.PathLike,
    config: Mapping[str, Any] | None = None,
    vocabularies: str | None = None,
) -> None:
    """Writes parameters to a file.

    Args:
      params: The parameters.
      path: The file, replaced at once when all is written.
      config: The config of the model, kept as JSON in the file's metadata.
      vocabularies: A hash of the vocabularies, kept there too.

    Raises:
      UserError: If the file cannot be written.
    """
    tensors = {name: np.asarray(leaf) for name, leaf in named_leaves(params).items()}
    metadata = {} if config is None else {_CONFIG: json.dumps(config)}
    if vocabularies is not None:
        metadata[_VOCABULARIES] = vocabularies
    try:
        with replacing(Path(path)) as partial:
            partial.write_bytes(save(tensors, {"format": "np", **metadata}))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from None


def load_weights(path: str | os.PathLike, like: Params) -> Params:
    """Reads parameters from a file.

    Args:
      path: The file.
      like: Parameters, or their shapes, of the model that they are for.

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
            tensors = [_read(path, file, name, leaf) for name, leaf in expected.items()]
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


def _read(path: str | os.PathLike, file: Any, name: str, leaf: Any) -> np.ndarray:
    """Reads one tensor, its type first: some that files may have NumPy cannot read."""
    where, header = f"{path}: tensor {name!r}", file.get_slice(name)
    shape, kind = tuple(header.get_shape()), header.get_dtype()
    if shape != tuple(leaf.shape):
        raise UserError(f"{where}: expected shape {tuple(leaf.shape)}, found {shape}")
    if kind not in _FLOATS:
        raise UserError(f"{where}: expected numbers of type {', '.join(_FLOATS)}, found {kind}")
    with np.errstate(over="ignore"):  # what the type cannot hold is refused below
        tensor = file.get_tensor(name).astype(leaf.dtype)
    is_finite = np.isfinite(tensor)
    if not is_finite.all():
        found = tensor[~is_finite][0]
        raise UserError(f"{where}: expected finite numbers of {leaf.dtype}, found {found}")
    return tensor


def starting_from(
    start: Callable[[jax.Array], TrainState], loaded: Params, like: TrainState
) -> Callable[[jax.Array], TrainState]:
    """Returns a function that starts a training as `start` does, but with other parameters.

    Args:
      start: From a key to a state.
      loaded: The parameters, on the host.
      like: The state's shapes and placement.
    """

    def begin(rng: jax.Array) -> TrainState:
        state = start(rng)
        place = functools.partial(jax.tree.map, lambda leaf, to: jax.device_put(leaf, to.sharding))
        average = state.average
        if average is not None:  # an array of its own, for both are given up to the first update
            average = place(jax.tree.map(np.copy, loaded), like.average)
        return dataclasses.replace(state, params=place(loaded, like.params), average=average)

    return begin


def initial_weights(path: str, like: Params, vocabularies: Path) -> Params:
    """Reads the parameters that a training is to start from.

    Args:
      path: The file.
      like: Parameters, or their shapes, of the model.
      vocabularies: The folder of those that the parameters are to be used with.

    Raises:
      UserError: As `load_weights`; or if the file knows of other vocabularies, whose tokens have
        other numbers.
    """
    loaded = load_weights(path, like)
    with safe_open(path, framework="np") as file:
        known = (file.metadata() or {}).get(_VOCABULARIES)
    if known not in (None, hash_files(vocabularies)):
        raise UserError(
            f"config.training.initial_weights: expected parameters for the vocabularies in "
            f"{vocabularies}, found those of others in {path}; start in a new --workdir, with "
            "config.data.vocabularies naming vocab/ of their run"
        )
    return loaded


def named_leaves(params: Params) -> dict[str, Any]:
    """Returns the leaves by their names, in the order of the tree."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    return {".".join(str(entry.key) for entry in path): leaf for path, leaf in leaves}
