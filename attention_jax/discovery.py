"""Plugins by file name: the parts of one kind are the modules of one folder; nothing lists them.

A folder of your own that is laid out as the package is (`layers/mechanisms/mine.py`) adds to it:
name it in the environment variable `ATTENTION_JAX_EXTENSIONS`, several separated as in `PATH`.
"""

import dataclasses
import functools
import hashlib
import importlib
import importlib.util
import os
import pkgutil
import sys
import traceback
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from attention_jax.errors import ConfigError, PartError, UserError, quoted
from attention_jax.paths import expanded

VARIABLE = "ATTENTION_JAX_EXTENSIONS"
_PACKAGE = "attention_jax"
_FOLDER = Path(__file__).parent

T = TypeVar("T")


class Parts:
    """Plugin registry: the parts of one kind, such as all encoders."""

    def __init__(
        self, package: str, defines: str = "Config", former: Mapping[str, str] | None = None,
        having: Collection[str] = (),
    ):  # fmt: skip
        """Imports nothing yet.

        Args:
          package: The folder, as a module's name: `attention_jax.layers.encoders`.
          defines: What a module must define to be a part; others in the folder are helpers.
          having: What that has to have.
          former: Names that configs of finished runs have for parts that are called otherwise now.
        """
        self._package = package
        self._defines = defines
        self._former = former or {}
        self._having = having

    def names(self) -> list[str]:
        """Lists the parts by name, sorted.

        Raises:
          ConfigError: If two files have one name.
          PartError: If one is no part of the kind.
        """
        return sorted(name for name in self._files() if self._is_part(name))

    def __iter__(self) -> Iterator[str]:
        """Lists the parts by name, sorted."""
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        """Tells whether there is a part of this name."""
        return name in self._files() and self._is_part(name)

    def find(self, name: str) -> ModuleType:
        """Returns the module of a part.

        Raises:
          KeyError: If there is none, with the list of names, and where one of one's own would be.
        """
        name = self._former.get(name, name)
        if name not in self:
            raise KeyError(self.names(), self.own)
        return self._module(name)

    def config(self, name: str) -> type:
        """Returns the config dataclass of a part; raises `KeyError` as `find` does."""
        return getattr(self.find(name), self._defines)

    @property
    def own(self) -> str:
        """Where a part of the user's own would be, for messages."""
        return f"your own: {self._below}/NAME.py in a folder that {VARIABLE} names"

    def _files(self) -> set[str]:
        paths = self._paths()
        # One folder after the other: for all at once, `iter_modules` lists each name once.
        counts = Counter(
            module.name for path in paths for module in pkgutil.iter_modules([path])
        )
        for name, count in counts.items():
            if count > 1:
                places = [str(Path(path)) for path in paths if _holds(path, name)]
                raise ConfigError(
                    f"{self._package}: expected one part called {name!r}, found it in "
                    f"{' and in '.join(places)}"
                )
            if not name.isidentifier():
                place = next(path for path in paths if _holds(path, name))
                raise ConfigError(
                    f"{Path(place, name)}.py: expected a name of letters, digits and underscores, "
                    "as of any module and as fields of configs have"
                )
        return set(counts)

    def _paths(self) -> list[str]:
        """Returns the folders that are searched, those of extensions after the package's own.

        Raises:
          ConfigError: If the variable names something that is not a folder.
        """
        package = importlib.import_module(self._package)
        for root in _roots():
            folder = os.path.abspath(expanded(root))
            if not os.path.isdir(folder):
                raise ConfigError(f"{VARIABLE}: expected folders, found {root!r}")
            path = os.path.join(folder, self._below)
            # Python looks for submodules along `__path__`: extensions are imported as any part is.
            if os.path.isdir(path) and path not in package.__path__:
                package.__path__.append(path)
        return list(package.__path__)

    @property
    def _below(self) -> str:
        """Where its files are, below the package and below folders of extensions."""
        return self._package.removeprefix(f"{_PACKAGE}.").replace(".", os.sep)

    def _is_part(self, name: str) -> bool:
        module = self._module(name)
        if not hasattr(module, self._defines):
            return False
        _check(module, self._defines, name, self._having)
        return True

    def _module(self, name: str) -> ModuleType:
        return _imported(f"{self._package}.{name}")


def module_of(config: Any) -> ModuleType:
    """Returns the file of a part, given its config: its name was looked up when that was read."""
    return sys.modules[type(config).__module__]


def build_part(config: Any, kind: type[T] | tuple[type[T], ...], *sizes: Any, **named: Any) -> T:
    """Builds the part that a config describes, by `build` of its file.

    Args:
      config: The part's own.
      kind: What it has to be.
      *sizes: What `build` is given beside the config.
      **named: The same, by name.

    Raises:
      PartError: If the file has no `build`, or that returns something else.
    """
    module, kinds = module_of(config), kind if isinstance(kind, tuple) else (kind,)
    build = getattr(module, "build", None)
    if build is None:
        raise PartError(f"{module.__file__}: expected a function called build, found none")
    try:
        made = build(config, *sizes, **named)
    except ValueError as error:
        if Path(module.__file__ or "").is_relative_to(_FOLDER):
            raise
        raise ValueError(f"{error} ({module.__file__})") from None
    if not isinstance(made, kinds):
        wanted = " or ".join(each.__name__ for each in kinds)
        raise PartError(
            f"{module.__file__}: expected build to return {wanted}, found {_described(made)}"
        )
    return made


def _described(value: Any) -> str:
    if type(value) is tuple:
        return f"a tuple of {', '.join(type(each).__name__ for each in value) or 'nothing'}"
    return type(value).__name__


def own_mistake(error: BaseException) -> str | None:
    """Returns where a file of the user's own failed, and with what; None if it is not to blame."""
    roots = [os.path.abspath(expanded(root)) for root in _roots()]
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if any(Path(frame.filename).is_relative_to(root) for root in roots)
    ]
    if not frames:
        return None
    last = frames[-1]
    return f"{last.filename}:{last.lineno}, {last.name}: {type(error).__name__}: {error}"


def own_files() -> dict[str, str]:
    """Returns the SHA-256 of each file of the user's own parts, by its path within its folder."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for root in map(expanded, _roots())
        # What else lies there, such as an environment, is no part.
        for folder in sorted(Path(root).iterdir()) if (_FOLDER / folder.name).is_dir()
        for path in sorted(folder.rglob("*.py"))
    }  # fmt: skip


def _roots() -> list[str]:
    return [*filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))]


@functools.cache
def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except UserError:
        raise
    except Exception as error:  # of a file that anybody may have written
        spec = importlib.util.find_spec(name)
        path = "" if spec is None else spec.origin or ""
        if Path(path).is_relative_to(_FOLDER):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == path]
        if isinstance(error, SyntaxError) and error.filename == path:  # which no frame has reached
            lines.append(error.lineno)
        where = ":".join([path, *map(str, lines[-1:])])
        raise ConfigError(
            f"{where}: expected a file that can be imported, found {type(error).__name__}: {error}"
        ) from error


def _check(module: ModuleType, defines: str, name: str, having: Collection[str]) -> None:
    """Refuses what is no config, lacks something, or has another name than its file.

    By that name it is found and read back.
    """
    config = getattr(module, defines)
    if not isinstance(config, type):
        return
    where = f"{module.__file__}: expected {defines}"
    # Its own: what is only inherited knows nothing of the fields that stand below it.
    made_as = vars(config).get("__dataclass_params__")
    if made_as is None or not made_as.frozen:
        raise PartError(f"{where} to be a frozen dataclass (@dataclasses.dataclass(frozen=True))")
    fields = config.__dataclass_fields__
    for each in having:
        if each not in fields and not hasattr(config, each):
            raise PartError(f"{where} to have {', '.join(having)}, found no {each}")
    own = fields["name"].default if "name" in fields else name
    if own != name:
        found = "none" if own is dataclasses.MISSING else quoted(own)
        raise PartError(
            f"{where}.name to be {name!r} by default, as the file is called, found {found}"
        )


def _holds(path: str, name: str) -> bool:
    return Path(path, f"{name}.py").exists() or Path(path, name, "__init__.py").exists()
