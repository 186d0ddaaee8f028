"""The folder of another program's model: its JSON files, its other files, and its tensors by name.

Tensors are in `model.safetensors`, or in several files that `model.safetensors.index.json` lists.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open

from attention_jax.errors import UserError
from attention_jax.json_files import Maybe, Shape, read_json
from attention_jax.runs.checkpoints.weights import read_tensor

_ONE, _INDEX = "model.safetensors", "model.safetensors.index.json"


class Folder:
    """A folder of a model's files.

    Attributes:
      path: Where it is.
    """

    def __init__(self, path: str | Path):
        """Names the folder; raises `UserError` if there is none."""
        self.path = Path(path)
        if not self.path.is_dir():
            raise UserError(f"{path}: expected a folder with config.json, found none")

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return (self.path / name).is_file()

    def json(self, name: str, shape: Shape) -> Any:
        """Reads a JSON file; raises `UserError` if it is missing or of another shape."""
        try:
            return read_json(self.path / name, shape, UserError)
        except FileNotFoundError:
            raise UserError(f"{self.path / name}: expected a file, found none") from None

    def maybe_json(self, name: str, shape: Mapping[str, Shape]) -> dict[str, Any]:
        """Reads a JSON object; an empty one if there is no such file."""
        shape = {key: each if key is str else Maybe(each) for key, each in shape.items()}
        return self.json(name, shape) if self.has(name) else {}

    def content(self, name: str) -> bytes:
        """Reads a file; raises `UserError` if it is missing."""
        try:
            return (self.path / name).read_bytes()
        except OSError:
            raise UserError(f"{self.path / name}: expected a file, found none") from None

    @contextlib.contextmanager
    def tensors(self) -> Iterator["Tensors"]:
        """Opens the tensors; every one has to be taken in the block.

        Raises:
          UserError: If a file is missing or damaged; if tensors are missing, of another shape, or
            not taken.
        """
        with contextlib.ExitStack() as opened:
            files: dict[str, Any] = {}
            for path in self._files():
                try:
                    file = opened.enter_context(safe_open(str(path), framework="np"))
                    files |= {name: (path, file) for name in file.keys()}  # noqa: SIM118
                except FileNotFoundError:
                    raise UserError(f"{path}: expected a safetensors file, found none") from None
                except (OSError, SafetensorError) as error:
                    raise UserError(f"{path} is no safetensors file: {error}") from None
            tensors = Tensors(self.path, files)
            yield tensors
            tensors.check_all_taken()

    def _files(self) -> list[Path]:
        if not self.has(_INDEX) or self.has(_ONE):
            if not self.has(_ONE) and (others := sorted(self.path.glob("*.bin"))):
                raise UserError(
                    f"{self.path / _ONE}: expected a safetensors file, found {others[0].name}, "
                    "which only PyTorch reads: save the model there again"
                )
            return [self.path / _ONE]
        known = self.json(_INDEX, {"weight_map": {str: str}})["weight_map"]
        return [self.path / Path(name).name for name in sorted({*known.values()})]


class Tensors:
    """Tensors by name, each of which is taken once.

    Attributes:
      place: The folder, for messages.
    """

    def __init__(self, place: Path, files: Mapping[str, tuple[Path, Any]]):
        """Keeps the open files by the tensors that they hold."""
        self.place, self._files = place, files
        self._left = set(files)

    def __contains__(self, name: object) -> bool:
        """Whether there is a tensor of this name."""
        return name in self._files

    @property
    def names(self) -> Sequence[str]:
        """The names of all, sorted."""
        return sorted(self._files)

    def take(self, name: str, *shape: int) -> np.ndarray:
        """Reads a tensor as float32; raises `UserError` if it is missing or of another shape."""
        if name not in self._files:
            raise UserError(f"{self.place}: tensor {name!r} missing")
        self._left.discard(name)
        path, file = self._files[name]
        return read_tensor(path, file, name, jax.ShapeDtypeStruct(shape, np.float32))

    def take_tied(self, names: Sequence[str], *shape: int) -> np.ndarray:
        """Weight tying: reads what may stand under any of several names, equal where under more.

        Raises:
          UserError: If it is under none of them, or not equal.
        """
        found = [name for name in names if name in self._files]
        first, *others = [self.take(name, *shape) for name in found or names[:1]]
        for name, other in zip(found[1:], others, strict=True):
            if not np.array_equal(first, other):
                raise UserError(
                    f"{self.place}: tensor {name!r}: expected that of {found[0]!r}, to which "
                    "config.json ties it, found another"
                )
        return first

    def leave_out(self, *names: str) -> None:
        """Takes tensors that follow from the config, such as tables of sines, without a look."""
        self._left.difference_update(names)

    def check_all_taken(self) -> None:
        """Raises `UserError` if there are tensors that no part of the model is made of."""
        if self._left:
            more = f" and {len(self._left) - 1} more" if len(self._left) > 1 else ""
            raise UserError(f"{self.place}: tensor {min(self._left)!r}{more} not of this model")
