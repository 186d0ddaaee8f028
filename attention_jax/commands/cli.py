"""Command line: what the programs share, such as flags, overrides and one-line error messages.

Nothing heavy is imported before it is needed, so that `--help` and mistakes are answered at once.
"""

import errno
import functools
import logging as standard_logging
import os
import pathlib
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from absl import app, flags, logging

from attention_jax.commands import streams
from attention_jax.errors import ConfigError, UserError, machine_message, quoted
from attention_jax.host import program_names
from attention_jax.host.parent_death import end_with_parent
from attention_jax.paths import expanded
from attention_jax.runs import mistakes
from attention_jax.runs.config_file import load_config
from attention_jax.runs.overrides import define_overrides, listed

T = TypeVar("T")

_FAILED, _INTERRUPTED = 2, 130  # exit codes; 130 is 128 + SIGINT, as shells have it
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What no second try would mend, as it might an error of a device or of too many open files.
_NO_ACCESS = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP)


def run(main: Callable[[], int | None], usage: str, prepare: Callable = lambda argv: argv) -> None:
    """Entry point of a program: parses flags, calls `main`, and exits with its code.

    Args:
      main: The program, which returns the exit code, None for 0.
      usage: The text of `--help`, in which programs have their names in the clone.
      prepare: Function that takes the command line, defines flags that depend on it, and returns
        the arguments that are left to be parsed.
    """
    try:
        streams.prepare()
    except streams.OutputError as error:
        _fail(str(error))
    end_with_parent()
    _quieten_libraries()
    usage = program_names.usage(usage.strip())
    app.run(
        lambda argv: _guarded(main),
        flags_parser=functools.partial(_parse, usage=usage, prepare=prepare),
    )


def _quieten_libraries() -> None:
    """Silences the logs of libraries that save in the background.

    They log their progress, and every error in each of their threads. An error reaches us as an
    exception as well, which is answered with one line.
    """
    logging.set_verbosity(logging.FATAL)
    standard_logging.getLogger("asyncio").setLevel(standard_logging.CRITICAL)
    show = sys.unraisablehook

    def show_ours(error: Any) -> None:
        if error.exc_type is not None and issubclass(error.exc_type, SystemExit):
            return  # told to stop while a callback ran: `Preemption` ends the program all the same
        # An error in a callback of compiled code names no object, and its thread is not Python's.
        if error.object is not None or threading.current_thread() is threading.main_thread():
            show(error)

    sys.unraisablehook = show_ours


def prepare_experiment(argv: Sequence[str]) -> list[str]:
    """Config overrides: defines `--config.FIELD` for the fields of the config file in `--config`.

    Returns:
      The command line without `--config`.

    Raises:
      UserError: If there is no such file, or an override does not fit it.
    """
    from attention_jax.config_choices import Choices
    from attention_jax.runs.config import template

    argv, location = take_out(argv, "config")
    if location is None:
        raise ConfigError("--config: expected a file such as configs/quickstart.py, found none")
    # Overrides such as `.name=` choose which fields there are, so they are looked at before.
    completed = template(load_config(location), Choices(listed(argv, "config")))
    return define_overrides(argv, "config", completed)


def prepare_search(argv: Sequence[str]) -> list[str]:
    """Search overrides: defines `--search.FIELD`, with the search of the first run as defaults.

    Raises:
      UserError: If there is no such run, or an override does not fit.
    """
    _, workdir = take_out(argv, "workdir")
    if not workdir:
        raise UserError("--workdir: expected the directory of a run, found none")
    from attention_jax.runs.config import complete
    from attention_jax.runs.run_directory import RunDirectory
    from attention_jax.search.config import SearchConfig

    directory = RunDirectory(directories(workdir)[0])
    directory.require()
    values = directory.read_config().get("search", {})
    return define_overrides(argv, "search", complete(SearchConfig, values, "search"))


def prepare_evaluation(argv: Sequence[str]) -> list[str]:
    """Search and data overrides: defines `--search.FIELD`, and `--data.FIELD` for moved texts.

    Raises:
      UserError: As `prepare_search`.
    """
    from ml_collections import ConfigDict

    argv = prepare_search(argv)
    return define_overrides(argv, "data", ConfigDict(_texts(take_out(argv, "workdir")[1])))


def moved_texts() -> Any:
    """Returns the texts for which the command line gives another place than the run's config."""
    from attention_jax.runs.named_files import Moved

    before = _texts(require("workdir"))
    now = {name: path for name, path in overridden("data").items() if path != before[name]}
    return Moved({f"data.{name}": path for name, path in now.items()})


def _texts(workdir: str) -> dict[str, str]:
    """Returns the paths of a run's text files by the names of their fields in `data`."""
    from attention_jax.runs.config import recorded_config
    from attention_jax.runs.named_files import texts
    from attention_jax.runs.run_directory import RunDirectory

    config = recorded_config(RunDirectory(directories(workdir)[0]))
    return {field.removeprefix("data."): path for field, path in texts(config).items()}


def directories(text: str, name: str = "workdir") -> list[str]:
    """Divides a flag's value at commas, but for those in the name of a directory that is there.

    A directory may be followed by `@STEP`.

    Raises:
      UserError: If there is nothing before, between or after commas.
    """
    found, left = [], text.split(",")
    while left:
        taken = next((n for n in range(len(left), 1, -1) if _is_directory(",".join(left[:n]))), 1)
        found.append(",".join(left[:taken]))
        left = left[taken:]
    if "" in found:
        raise UserError(f"--{name}: expected directories with commas between, found {text!r}")
    return found


def _is_directory(text: str) -> bool:
    path, _, step = text.rpartition("@")
    return os.path.isdir(text) or step.isdecimal() and os.path.isdir(path)


def overridden(name: str) -> Any:
    """Returns the values of a group of fields, with the overrides of the command line."""
    return flags.FLAGS[name].value.to_dict()


def require(name: str) -> str:
    """Returns the value of a required flag.

    Raises:
      UserError: If it has none.
    """
    value = flags.FLAGS[name].value
    if not value:
        raise UserError(f"--{name}: expected a value, found none")
    return value


def either(first: str, second: str) -> str:
    """Returns the name of the one of two flags that has a value.

    Raises:
      UserError: If both have one, or neither.
    """
    given = [name for name in (first, second) if value(name)]
    if len(given) != 1:
        found = "both" if given else "neither"
        raise UserError(f"--{first}: expected either this or --{second}, found {found}")
    return given[0]


def value(name: str) -> Any:
    """Returns the value of a flag, or None."""
    return flags.FLAGS[name].value


def named_texts(name: str) -> dict[str, list[str]]:
    """Reads the lines of files that a flag gives as NAME=FILE, any number of times.

    Raises:
      UserError: If one is given otherwise, or a name twice.
      DataError: If a file cannot be read.
    """
    from attention_jax.data.lines import read_lines

    found: dict[str, list[str]] = {}
    for text in value(name):
        key, _, path = text.partition("=")
        if not (key and path) or key in found:
            raise UserError(f"--{name}: expected NAME=FILE, each name once, found {text!r}")
        found[key] = read_lines(path)
    return found


def lines_of(name: str) -> list[str] | None:
    """Reads the lines of the file that a flag names; None if it names none.

    Raises:
      DataError: If the file cannot be read.
    """
    from attention_jax.data.lines import read_lines

    return read_lines(value(name)) if value(name) else None


def note(line: str) -> None:
    """Prints a notice to the standard error, which is no part of a program's output."""
    print(line, file=sys.stderr)


def output_path(name: str, *suffixes: str) -> pathlib.Path | None:
    """Returns the path that a flag names, after checking that it can be written; None for no value.

    Args:
      name: Name of the flag.
      suffixes: Allowed endings of the file's name, any if empty.

    Raises:
      UserError: If it cannot be written. Its directory must exist, since it may be mistyped; an
        address is no path.
    """
    if not value(name):
        return None
    path = expanded(value(name))
    if suffixes and not path.name.endswith(suffixes):
        ends = " or ".join(suffixes)
        raise UserError(f"--{name}: expected a name that ends in {ends}, found {path}")
    reason = None
    try:
        if path.exists() and not path.is_file():
            reason = "it is no file"
        elif not path.parent.is_dir():
            reason = f"there is no directory {path.parent}"
        else:
            # To try is the only sure test; the file itself stays as it is until there is output.
            with tempfile.TemporaryFile(dir=path.parent):
                pass
    except OSError as error:
        reason = error.strerror
    if reason:
        raise UserError(f"--{name}: {path} cannot be written ({reason})")
    return path


def use_compilation_cache() -> None:
    """Compilation cache: keeps compiled programs between runs, which saves seconds at every start.

    `JAX_COMPILATION_CACHE_DIR` names another folder; if it is empty, there is no cache.
    """
    from attention_jax.devices import compilation_cache, processes

    compilation_cache.keep_what_takes_long()
    compilation_cache.keep_by_default(note if processes.is_first() else lambda line: None)


def _parse(argv: Sequence[str], usage: str, prepare: Callable) -> list[str]:
    def parse() -> list[str]:
        # Before `prepare`, so that help needs no config file.
        if any(argument in ("--help", "-h", "-help", "--helpfull") for argument in argv[1:]):
            print(usage, flush=True)
            sys.exit(0)
        return parse_flags(prepare(list(argv)), flags.FLAGS)

    return _answered(parse)


def parse_flags(argv: Sequence[str], found: flags.FlagValues) -> list[str]:
    """Parses a command line; returns the program's name, which is all that flags may leave of it.

    Raises:
      UserError: If there is no such flag, it does not take its value, or something is no flag.
    """
    try:
        rest = found(argv)
    except flags.UnrecognizedFlagError as error:
        raise UserError(mistakes.unknown_option(error.flagname, found)) from None
    except flags.Error as error:
        raise UserError(mistakes.illegal_value(error, found)) from None
    except (ValueError, TypeError) as error:
        raise UserError(" ".join(str(error).split())) from None
    if len(rest) > 1:
        raise UserError(f"unexpected argument {quoted(rest[1])}; options start with --")
    return rest


def _guarded(main: Callable[[], int | None]) -> int:
    def guarded() -> int:
        from attention_jax.devices.host_memory import keep_freed_memory

        keep_freed_memory()
        code = main() or 0
        sys.stdout.flush()
        return code

    return _answered(guarded)


def _answered(call: Callable[[], T]) -> T:
    """Calls a part of a program; a mistake of any kind ends the program with a one-line message."""
    try:
        return call()
    except UserError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except streams.OutputError as error:
        streams.discard_output()
        _fail(str(error))
    except BrokenPipeError:  # the reader of our output has finished, as `head` does
        streams.discard_output()
        sys.exit(0)
    except Exception as error:
        message = _told(error)
        if message is None or sys.flags.dev_mode:  # a bug of ours: its traceback is wanted
            raise
        _fail(message)


def _told(error: Exception) -> str | None:
    """Returns what a user can mend, of an error that nobody has put into words; None if nothing."""
    if isinstance(error, OSError):
        named = error.filename or "a file that is written"
        if error.errno in _NO_ROOM:
            return f"{named} cannot be written: {error.strerror}"
        if error.errno in _NO_ACCESS:
            return f"{named} cannot be used: {error.strerror}"
    elif isinstance(error, RuntimeError | ValueError | AssertionError | MemoryError):
        if message := machine_message(error):
            return message
    from attention_jax.discovery import own_mistake

    return own_mistake(error)


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"error: {UserError(message)}\n")  # `print` is a name that a config may take
    sys.exit(_FAILED)


def take_out(argv: Sequence[str], name: str) -> tuple[list[str], str | None]:
    """Removes `--name=value` and `--name value`; returns the other arguments and the last value."""
    left, value, arguments = [], None, iter(argv)
    for argument in arguments:
        if argument in (f"--{name}", f"-{name}"):
            value = next(arguments, None)
        elif match := re.fullmatch(rf"--?{name}=(.*)", argument, re.DOTALL):
            value = match[1]
        else:
            left.append(argument)
    return left, value
