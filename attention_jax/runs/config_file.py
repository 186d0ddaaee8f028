"""Config files: runs the user's code, which may do anything, to get a plain config.

The `config.json` of a run is one as well: a new training then begins from what that run was.
"""

import contextlib
import difflib
import importlib.util
import itertools
import os
import pathlib
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from ml_collections import ConfigDict

from attention_jax.errors import ConfigError, UserError, quoted
from attention_jax.json_files import read_json

# Bounds for a config that contains itself.
_DEEPEST = 32
_MOST_FIELDS = 100_000
_SCALARS = (bool, int, float, str)


def load_config(location: str) -> ConfigDict:
    """Config file: calls its `get_config`, or reads it where it is JSON.

    Args:
      location: Path of the file, or the name of one of this project's, such as `bahdanau2015`;
        followed by `:argument` if it takes one.

    Returns:
      A copy of the config: groups, lists and tuples of plain values.

    Raises:
      ConfigError: If there is no such file, or it fails in any way.
    """
    path, argument = _file_and_argument(location)
    file, beside = pathlib.Path(path), pathlib.Path.cwd()
    if not os.path.isfile(file) and path in (known := _of_papers()):
        file, beside = known[path], known[path].parents[1]
    if not os.path.isfile(file):
        raise ConfigError(f"--config: expected a file, found none at {path}{_nearest_file(file)}")
    if file.suffix == ".json":
        if argument:
            raise ConfigError(f"--config: expected nothing after {path}, found {argument!r}")
        values = read_json(file, {str: object}, ConfigError)
        return _plain(values, path, _DEEPEST, itertools.count())
    spec = importlib.util.spec_from_file_location("experiment_config", file)
    if spec is None:
        raise ConfigError(f"--config: expected a Python file, found {path}")
    module = importlib.util.module_from_spec(spec)
    with _importing_from(beside), _interrupts() as received:
        try:
            spec.loader.exec_module(module)
            return _called(module, argument, location)
        except UserError:
            raise
        except BaseException as error:  # even sys.exit: the file fails, and not this program
            if received:  # the user pressed Ctrl-C, and the file has made another error of it
                raise KeyboardInterrupt from None
            raise ConfigError(f"{location}: {_reason(error)}") from None


def _called(module: ModuleType, argument: str, location: str) -> ConfigDict:
    """Calls `get_config` of a module and copies the result."""
    values = module.get_config(argument) if argument else module.get_config()
    if not isinstance(values, ConfigDict):
        raise ConfigError(f"{location}: expected a ConfigDict, found {type(values).__name__}")
    return _plain(values, f"{location}: config", _DEEPEST, itertools.count())


def _plain(value: Any, where: str, depth: int, count: Iterator[int]) -> Any:
    """Copies a config that may contain anything, even itself.

    Args:
      value: A group, a sequence or a scalar.
      where: Its path, for messages.
      depth: How many levels of groups may be below it.
      count: Counter of the values copied so far.
    """
    if depth < 0 or next(count) > _MOST_FIELDS:
        limit = f"at most {_MOST_FIELDS} values" if depth >= 0 else f"groups {_DEEPEST} deep"
        raise ConfigError(f"{where}: expected {limit}, found more; does it hold itself?")
    if isinstance(value, ConfigDict | Mapping):
        copy = ConfigDict(convert_dict=False)
        for name in list(value.keys()):
            if not isinstance(name, str):
                raise ConfigError(f"{where}: expected names of fields, found {quoted(name)}")
            copy[name] = _plain(value[name], f"{where}.{name}", depth - 1, count)
        return copy
    if isinstance(value, list | tuple):
        kind = tuple if isinstance(value, tuple) else list
        return kind(
            _plain(item, f"{where}[{index}]", depth - 1, count)
            for index, item in enumerate(value)
        )
    if value is None:
        return None
    for kind in _SCALARS:  # bool comes first, for it is a subclass of int
        if isinstance(value, kind):
            # A subclass, such as an enum, may override `__int__`: the base's own is called.
            return value if type(value) is kind else _BASES[kind](value)
    found = type(value).__name__
    raise ConfigError(f"{where}: expected a number, a text, a tuple or a group, found {found}")


_BASES = {int: int.__int__, float: float.__float__, str: str.__str__}


def _reason(error: BaseException) -> str:
    """Returns an error of a config file as one line."""
    try:
        message = " ".join(str(error).split())
    except BaseException:  # the file's own exceptions may fail to become text
        message = "an error without a text"
    if isinstance(error, ValueError):  # by which a config file refuses its argument
        return message
    return f"{type(error).__name__}: {message}"


@contextlib.contextmanager
def _importing_from(folder: pathlib.Path) -> Iterator[None]:
    """Lets a config file import from a folder: the working directory, as under `python -m`."""
    here, old = str(folder), sys.dont_write_bytecode
    sys.path.insert(0, here)
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the file has removed it
            sys.path.remove(here)
        sys.dont_write_bytecode = old


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Signal handling: lists every Ctrl-C, to tell it from a KeyboardInterrupt that code raises."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # others cannot set handlers
        yield received
        return

    def interrupt(number, frame):
        received.append(number)
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGINT, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, old)


def _file_and_argument(location: str) -> tuple[str, str]:
    """Divides `FILE:ARGUMENT` at the first colon that follows the path of an existing file."""
    parts = location.split(":")
    for number in range(1, len(parts) + 1):
        path = ":".join(parts[:number])
        if os.path.isfile(path):
            return path, ":".join(parts[number:])
    return parts[0], ":".join(parts[1:])


def _of_papers() -> dict[str, pathlib.Path]:
    """Returns the config files of this project by their names: those of the wheel, or the clone."""
    package = pathlib.Path(__file__).parents[1]
    folders = [package / "bundled" / "configs", package.parent / "configs"]
    folder = next((folder for folder in folders if folder.is_dir()), None)
    files = sorted(folder.glob("[!_]*.py")) if folder else []
    return {file.stem: file for file in files if file.stem != "common"}


def _nearest_file(file: pathlib.Path) -> str:
    """Returns the end of a message that suggests a file with a similar name, or nothing."""
    folder = file.parent
    names = [path.name for path in folder.glob("*.py")] if os.path.isdir(folder) else []
    near = difflib.get_close_matches(file.name, names, n=1)
    found = [str(folder / name) for name in near]
    found = found or difflib.get_close_matches(file.stem, _of_papers(), n=1)
    return f"; did you mean {found[0]}?" if found else ""
