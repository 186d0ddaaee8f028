"""What the programs share: flags, overrides of config fields, one line for every mistake.

Nothing heavy is imported before it is needed, so that `--help` and mistakes are answered at once.
"""

import contextlib
import difflib
import errno
import functools
import importlib.util
import itertools
import logging as standard_logging
import os
import pathlib
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from absl import app, flags, logging
from ml_collections import ConfigDict, config_flags

from attention_jax.commands import additions, mistakes, names
from attention_jax.errors import ConfigError, UserError

_FAILED, _INTERRUPTED = 2, 130
_OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"  # what every device's allocator says


def run(main: Callable[[], int | None], usage: str, prepare: Callable = lambda argv: argv) -> None:
    """Runs a program: flags first, then `main`, then exit with its code.

    Args:
      main: The program; what it returns is the exit code, None for 0.
      usage: What `--help` prints, with the names that programs have in the clone.
      prepare: Gets the command line, defines flags that depend on it, and returns what is left
        for the flags to parse.
    """
    _quieten_libraries()
    app.run(
        lambda argv: _guarded(main),
        flags_parser=functools.partial(_parse, usage=names.usage(usage.strip()), prepare=prepare),
    )


def _quieten_libraries() -> None:
    """Keeps to themselves what libraries that save in the background have to say.

    They log what they do, and what went wrong in each of their threads, compiled ones included.
    We are told of it by an exception, and answer in a line.
    """
    logging.set_verbosity(logging.FATAL)
    standard_logging.getLogger("asyncio").setLevel(standard_logging.CRITICAL)
    show = sys.unraisablehook

    def show_ours(error: Any) -> None:
        # Callbacks of compiled code have nothing to name, and threads that are not Python's.
        if error.object is not None or threading.current_thread() is threading.main_thread():
            show(error)

    sys.unraisablehook = show_ours


def prepare_experiment(argv: Sequence[str]) -> list[str]:
    """Defines `--config.FIELD` for the config file that the command line names.

    Returns:
      The command line without `--config`.

    Raises:
      UserError: If there is no such file, or an override does not fit it.
    """
    from attention_jax.training.config import template

    argv, location = _take_out(argv, "config")
    if location is None:
        raise ConfigError("--config: expected a file such as configs/quickstart.py, found none")
    values = additions.with_groups(load_config(location), _overrides(argv, "config"))
    argv, values = additions.with_refinements(argv, values)
    overrides = _overrides(argv, "config")
    values = additions.with_additions(values, [path for path, _ in overrides])
    completed = template(values, _chosen_names(overrides))
    return define_overrides(argv, "config", completed)


def prepare_search(argv: Sequence[str]) -> list[str]:
    """Defines `--search.FIELD`, starting from how the run of `--workdir` searches.

    Raises:
      UserError: If there is no such run, or an override does not fit.
    """
    _, workdir = _take_out(argv, "workdir")
    if not workdir:
        raise UserError("--workdir: expected the directory of a run, found none")
    from attention_jax.search.config import SearchConfig
    from attention_jax.training.config import complete
    from attention_jax.training.run_directory import RunDirectory

    directory = RunDirectory(workdir)
    directory.require()
    values = directory.read_config().get("search", {})
    return define_overrides(argv, "search", complete(SearchConfig, values, "search"))


def overridden(name: str) -> Any:
    """Returns the values of a group after the overrides of the command line."""
    return flags.FLAGS[name].value.to_dict()


def define_overrides(
    argv: Sequence[str],
    name: str,
    values: ConfigDict,
    flag_values: flags.FlagValues = flags.FLAGS,
) -> list[str]:
    """Defines `--NAME.FIELD` for every field of `values` and checks those on the command line.

    `flags.FLAGS[name].value` then holds the values as they were overridden.

    Raises:
      ConfigError: If there is no such field, or its value is of the wrong type.
    """
    for path, text in _overrides(argv, name):
        _check_override(values, name, path, text)
    config_flags.DEFINE_config_dict(
        name, values, flag_values=flag_values, sys_argv=list(argv)
    )
    return list(argv)


def load_config(location: str) -> ConfigDict:
    """Calls `get_config` of a config file.

    Args:
      location: Path of the file, followed by `:argument` where it takes one.

    Raises:
      ConfigError: If there is no such file, or it fails.
    """
    path, argument = _file_and_argument(location)
    file = pathlib.Path(path)
    if not file.is_file():
        raise ConfigError(f"--config: expected a file, found none at {path}{_nearest_file(file)}")
    spec = importlib.util.spec_from_file_location("experiment_config", file)
    if spec is None:
        raise ConfigError(f"--config: expected a Python file, found {path}")
    module = importlib.util.module_from_spec(spec)
    try:
        with _importing_from_here():
            spec.loader.exec_module(module)
            values = module.get_config(argument) if argument else module.get_config()
    except UserError:
        raise
    except Exception as error:
        message = " ".join(str(error).split())
        if not isinstance(error, ValueError):  # by which a config file refuses its argument
            message = f"{type(error).__name__}: {message}"
        raise ConfigError(f"{location}: {message}") from None
    if not isinstance(values, ConfigDict):
        raise ConfigError(f"{location}: expected a ConfigDict, found {type(values).__name__}")
    return values


def _file_and_argument(location: str) -> tuple[str, str]:
    """Divides `FILE:ARGUMENT` at the first colon that a file's name comes before."""
    parts = location.split(":")
    for number in range(1, len(parts) + 1):
        path = ":".join(parts[:number])
        if pathlib.Path(path).is_file():
            return path, ":".join(parts[number:])
    return parts[0], ":".join(parts[1:])


@contextlib.contextmanager
def _importing_from_here() -> Iterator[None]:
    """Lets a config file import what the working directory holds, as under `python -m`."""
    here, old = os.getcwd(), sys.dont_write_bytecode
    sys.path.insert(0, here)
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the file has taken it out
            sys.path.remove(here)
        sys.dont_write_bytecode = old


def require(name: str) -> str:
    """Returns the value of a flag that has to be given.

    Raises:
      UserError: If it is not.
    """
    value = flags.FLAGS[name].value
    if not value:
        raise UserError(f"--{name}: expected a value, found none")
    return value


def value(name: str) -> Any:
    """Returns the value of a flag, or None."""
    return flags.FLAGS[name].value


def note(line: str) -> None:
    """Says something that is not part of a program's output."""
    print(line, file=sys.stderr)


def output_path(name: str, *suffixes: str) -> pathlib.Path | None:
    """Returns the file that a flag names, once it is sure that it can be written; None for none.

    Args:
      name: Of the flag.
      suffixes: What the file's name has to end in, one of them.

    Raises:
      UserError: If it cannot, or its directory does not exist: a mistyped one is not made.
    """
    if not value(name):
        return None
    path = pathlib.Path(value(name))
    if suffixes and not path.name.endswith(suffixes):
        ends = " or ".join(suffixes)
        raise UserError(f"--{name}: expected a name that ends in {ends}, found {path}")
    reason = None
    if path.exists() and not path.is_file():
        reason = "it is no file"
    elif not path.parent.is_dir():
        reason = f"there is no directory {path.parent}"
    else:
        try:
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            reason = error.strerror
    if reason:
        raise UserError(f"--{name}: {path} cannot be written ({reason})")
    return path


def use_compilation_cache() -> None:
    """Keeps compiled programs between runs, which saves seconds at every start.

    `JAX_COMPILATION_CACHE_DIR` names another place; empty, it turns the cache off.
    """
    import jax

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
        jax.config.update("jax_compilation_cache_dir", str(cache / "attention_jax" / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    # An entry cut short by a killed process is compiled again, which is all there is to know.
    warnings.filterwarnings("ignore", message="Error reading persistent compilation cache entry")


def _parse(argv: Sequence[str], usage: str, prepare: Callable) -> list[str]:
    if any(argument in ("--help", "-h", "-help", "--helpfull") for argument in argv[1:]):
        try:
            print(usage, flush=True)
        except BrokenPipeError:
            _discard_output()
        sys.exit(0)
    try:
        argv = prepare(list(argv))
        try:
            rest = flags.FLAGS(argv)
        except flags.Error as error:
            raise UserError(mistakes.illegal_value(error, flags.FLAGS)) from None
        except (ValueError, TypeError) as error:
            raise UserError(" ".join(str(error).split())) from None
        if len(rest) > 1:
            raise UserError(f"unexpected argument {rest[1]!r}; options start with --")
        return rest
    except UserError as error:
        _fail(str(error))


def _guarded(main: Callable[[], int | None]) -> int:
    from attention_jax.training.host_memory import keep_freed_memory

    keep_freed_memory()
    try:
        code = main() or 0
        sys.stdout.flush()
        return code
    except UserError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except RuntimeError as error:
        if _OUT_OF_MEMORY not in str(error):
            raise
        text = " ".join(str(error).split()).removesuffix(".")
        _fail(f"{text}; smaller batches, beams or models take less")
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        _discard_output()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        if error.filename is None:
            _discard_output()
            _fail(f"the output, or a file that is written, does not fit: {error.strerror}")
        _fail(f"{error.filename} cannot be written: {error.strerror}")


def _discard_output() -> None:
    """Lets what is still to be printed vanish, for the interpreter prints it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(_FAILED)


def _take_out(argv: Sequence[str], name: str) -> tuple[list[str], str | None]:
    """Removes `--name=value` or `--name value` and returns the last value."""
    left, value, arguments = [], None, iter(argv)
    for argument in arguments:
        if argument in (f"--{name}", f"-{name}"):
            value = next(arguments, None)
        elif match := re.fullmatch(rf"--?{name}=(.*)", argument, re.DOTALL):
            value = match[1]
        else:
            left.append(argument)
    return left, value


def _overrides(argv: Sequence[str], name: str) -> list[tuple[str, str | None]]:
    """Lists `--name.path=text`, `--name.path text` and `--noname.path` as (path, text).

    Text is None where a path is given alone, and `false` where it is denied.
    """
    found = []
    for argument, following in itertools.zip_longest(argv[1:], argv[2:], fillvalue="--"):
        if match := re.fullmatch(rf"--?{name}\.([^=]+)(?:=(.*))?", argument, re.DOTALL):
            text = None if following.startswith("--") else following
            found.append((match[1], text if match[2] is None else match[2]))
        elif match := re.fullmatch(rf"--?no{name}\.([^=]+)", argument):
            found.append((match[1], "false"))
    return found


def _chosen_names(overrides: Sequence[tuple[str, str | None]]) -> Mapping[str, str]:
    return {
        f"config.{path.removesuffix('.name')}": text
        for path, text in overrides
        if path.endswith(".name") and text is not None
    }


def _check_override(values: ConfigDict, name: str, path: str, text: str | None) -> None:
    group, where, parts = values, name, iter(path.split("."))
    for part in parts:
        if not isinstance(group, ConfigDict):
            raise ConfigError(f"--{where}.{part}: no such field; {where} is a single value")
        if part not in group.keys():
            below = next(parts, None)
            raise ConfigError(mistakes.unknown_field(values, name, where, part, below))
        where = f"{where}.{part}"
        kind, group = group.get_type(part), group[part]
    if isinstance(group, ConfigDict):
        fields = ", ".join(sorted(group.keys()))
        has_name = text and "name" in group.keys()
        hint = f"; --{where}.name={text} chooses another" if has_name else ""
        raise ConfigError(
            f"--{where}: expected one of its fields ({fields}), found the group{hint}"
        )
    if text is not None and not _fits(kind, text):
        raise ConfigError(f"--{where}: expected {kind.__name__}, found {text!r}")


def _fits(kind: type, text: str) -> bool:
    if kind is bool:
        return text.lower() in ("true", "false", "1", "0", "t", "f")
    if kind not in (int, float):
        return True
    try:
        kind(text)
    except ValueError:
        return False
    return True


def _nearest_file(file: pathlib.Path) -> str:
    folder = file.parent
    names = [path.name for path in folder.glob("*.py")] if folder.is_dir() else []
    near = difflib.get_close_matches(file.name, names, n=1)
    return f"; did you mean {folder / near[0]}?" if near else ""
