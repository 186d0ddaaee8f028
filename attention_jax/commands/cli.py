"""What the programs share: flags, overrides of config fields, one line for every mistake.

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
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from absl import app, flags, logging

from attention_jax.commands import mistakes, names, streams
from attention_jax.commands.config_file import load_config
from attention_jax.commands.overrides import define_overrides, listed
from attention_jax.errors import ConfigError, UserError, quoted

T = TypeVar("T")

_FAILED, _INTERRUPTED = 2, 130


def run(main: Callable[[], int | None], usage: str, prepare: Callable = lambda argv: argv) -> None:
    """Runs a program: flags first, then `main`, then exit with its code.

    Args:
      main: The program; what it returns is the exit code, None for 0.
      usage: What `--help` prints, with the names that programs have in the clone.
      prepare: Gets the command line, defines flags that depend on it, and returns what is left
        for the flags to parse.
    """
    try:
        streams.prepare()
    except streams.OutputError as error:
        _fail(str(error))
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
    from attention_jax.config_choices import Choices
    from attention_jax.runs.config import template

    argv, location = _take_out(argv, "config")
    if location is None:
        raise ConfigError("--config: expected a file such as configs/quickstart.py, found none")
    completed = template(load_config(location), Choices(listed(argv, "config")))
    return define_overrides(argv, "config", completed)


def prepare_search(argv: Sequence[str]) -> list[str]:
    """Defines `--search.FIELD`, starting from how the run of `--workdir` searches.

    Raises:
      UserError: If there is no such run, or an override does not fit.
    """
    _, workdir = _take_out(argv, "workdir")
    if not workdir:
        raise UserError("--workdir: expected the directory of a run, found none")
    from attention_jax.runs.config import complete
    from attention_jax.runs.run_directory import RunDirectory
    from attention_jax.search.config import SearchConfig

    directory = RunDirectory(workdir)
    directory.require()
    values = directory.read_config().get("search", {})
    return define_overrides(argv, "search", complete(SearchConfig, values, "search"))


def prepare_evaluation(argv: Sequence[str]) -> list[str]:
    """Defines `--search.FIELD`, and `--data.FIELD` for the new places of a run's texts.

    Raises:
      UserError: As `prepare_search`.
    """
    from ml_collections import ConfigDict

    argv = prepare_search(argv)
    return define_overrides(argv, "data", ConfigDict(_texts(_take_out(argv, "workdir")[1])))


def moved_texts() -> Any:
    """Returns which texts the command line says are elsewhere than the run's config does."""
    from attention_jax.runs.named_files import Moved

    before = _texts(require("workdir"))
    now = {name: path for name, path in overridden("data").items() if path != before[name]}
    return Moved({f"data.{name}": path for name, path in now.items()})


def _texts(workdir: str) -> dict[str, str]:
    from attention_jax.runs.config import from_config_dict
    from attention_jax.runs.named_files import texts
    from attention_jax.runs.run_directory import RunDirectory

    config = from_config_dict(RunDirectory(workdir).read_config())
    return {field.removeprefix("data."): path for field, path in texts(config).items()}


def overridden(name: str) -> Any:
    """Returns the values of a group after the overrides of the command line."""
    return flags.FLAGS[name].value.to_dict()


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

    from attention_jax.paths import user_cache

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(user_cache() / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    # An entry cut short by a killed process is compiled again, which is all there is to know.
    warnings.filterwarnings("ignore", message="Error reading persistent compilation cache entry")


def _parse(argv: Sequence[str], usage: str, prepare: Callable) -> list[str]:
    def parse() -> list[str]:
        if any(argument in ("--help", "-h", "-help", "--helpfull") for argument in argv[1:]):
            print(usage, flush=True)
            sys.exit(0)
        left = prepare(list(argv))
        try:
            rest = flags.FLAGS(left)
        except flags.Error as error:
            raise UserError(mistakes.illegal_value(error, flags.FLAGS)) from None
        except (ValueError, TypeError) as error:
            raise UserError(" ".join(str(error).split())) from None
        if len(rest) > 1:
            raise UserError(f"unexpected argument {quoted(rest[1])}; options start with --")
        return rest

    return _answered(parse)


def _guarded(main: Callable[[], int | None]) -> int:
    def guarded() -> int:
        from attention_jax.devices.host_memory import keep_freed_memory

        keep_freed_memory()
        code = main() or 0
        sys.stdout.flush()
        return code

    return _answered(guarded)


def _answered(call: Callable[[], T]) -> T:
    """Calls a part of a program; a mistake, of whatever kind, ends the program with one line."""
    try:
        return call()
    except UserError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except streams.OutputError as error:
        streams.discard_output()
        _fail(str(error))
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        streams.discard_output()
        sys.exit(0)
    except (RuntimeError, ValueError, AssertionError, MemoryError) as error:
        message = mistakes.of_the_machine(error)
        if message is None:
            raise
        _fail(message)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        named = error.filename or "a file that is written"
        _fail(f"{named} cannot be written: {error.strerror}")


def _fail(message: str) -> NoReturn:
    print(f"error: {UserError(message)}", file=sys.stderr)
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
