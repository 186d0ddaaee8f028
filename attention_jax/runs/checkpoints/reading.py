"""Reading a checkpoint: the arrays and the records of one step, or why they cannot be read."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import orbax.checkpoint as ocp

from attention_jax.errors import CheckpointError
from attention_jax.json_files import mismatch
from attention_jax.paths import plainly_named
from attention_jax.runs.checkpoints.named_arrays import (
    leaf_name,
    leaves_by_name,
    nested_by_name,
    require_same_arrays,
)
from attention_jax.runs.checkpoints.step_folders import ITEMS


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """The content of one step.

    Attributes:
      step: Number of updates made.
      state: The training state, a pytree like the one given to `restore`.
      data: Position of the data iterator, plain JSON.
      config: Of the run that saved it, plain JSON.
      host: The trainer's own state, plain JSON.
    """

    step: int
    state: Any
    data: Mapping[str, Any]
    config: Mapping[str, Any]
    host: Mapping[str, Any]


class Unreadable(Exception):
    """A step passed the checksums, or has none, and still could not be read."""


def read_checkpoint(folder: pathlib.Path, step: int, like: Any) -> Checkpoint:
    """Reads a checkpoint.

    Args:
      folder: The step's.
      step: Its number.
      like: Pytree of `jax.ShapeDtypeStruct` with the shardings that the state shall have.

    Raises:
      CheckpointError: If its arrays are not those of `like`.
      Unreadable: If its files are damaged.
    """
    names = nested_by_name(like)
    with (
        plainly_named(folder) as path,
        ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as reader,
    ):
        try:
            # Names, shapes and types are compared before any array is read: Orbax's own errors
            # about them are long, and it may cast a type in silence.
            saved = ocp.StandardCheckpointHandler().metadata(path / "state").tree
        except Exception as error:
            raise Unreadable(first_line(error)) from None
        require_same_arrays(step, expected=names, found=saved)
        try:
            restored = reader.restore(
                path,
                args=ocp.args.Composite(
                    state=ocp.args.StandardRestore(names),
                    data=ocp.args.JsonRestore(),
                    config=ocp.args.JsonRestore(),
                    host=ocp.args.JsonRestore(),
                ),
            )
        except Exception as error:
            raise Unreadable(first_line(error)) from None
    # `mismatch` with {}: the JSON items must be objects.
    for name in ITEMS[1:]:
        if problem := mismatch(restored[name], {}):
            raise Unreadable(f"{name}: {problem}")
    leaves = leaves_by_name(restored["state"])
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    state = jax.tree.unflatten(structure, [leaves[leaf_name(path)] for path, _ in paths])
    return Checkpoint(step, state, *(restored[name] for name in ITEMS[1:]))


def first_line(error: BaseException) -> str:
    """Returns the kind of an error and the first line of what it says, shortened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


@contextlib.contextmanager
def one_line(message: str) -> Iterator[None]:
    """Turns any error of the storage library, often 60 lines long, into one line."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(f"{message}: {first_line(error)}") from None
