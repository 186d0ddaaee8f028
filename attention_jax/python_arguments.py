"""Messages in the words of a Python caller: arguments, where programs name their options.

What is below `api` is shared with the programs of the command line, and tells a mistake by the
option in which it was made: `--prefix line 2` is `prefixes[1]` to who calls `run.translate`.
"""

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from attention_jax.errors import UserError

_Call = TypeVar("_Call", bound=Callable)

# What a message quotes is the user's, and is left as it is; an apostrophe quotes nothing.
_QUOTED = re.compile(r"""(?<!\w)(`[^`]*`|'[^']*'|"[^"]*")""")
_OPTION = re.compile(r"--([a-z]\w*)((?:\.\w+)*)(?:=([^\s,;:)]*))?(?: line (\d+))?")
_LINE = re.compile(r"\binput line (\d+)|\bgold:(\d+)")
_FILE = re.compile(r"\b(\w+)=FILE\b")
# Options that are groups of fields, and arguments of the same names.
_GROUPS = ("config", "search")


def by_argument(**names: str) -> Callable[[_Call], _Call]:
    """Decorator: messages of the mistakes of a call name its arguments.

    Args:
      **names: The argument for each option that is called otherwise.
    """

    def decorated(call: _Call) -> _Call:
        @functools.wraps(call)
        def called(*args: Any, **kwargs: Any) -> Any:
            with _named(names):
                return call(*args, **kwargs)

        return called  # type: ignore[return-value]

    return decorated


def in_arguments(text: str, names: Mapping[str, str] = {}) -> str:  # noqa: B006
    """Returns a message that names arguments in place of options.

    Args:
      text: The message.
      names: The argument for each option that is called otherwise.
    """
    parts = _QUOTED.split(text)  # at odd places what is quoted
    parts[::2] = [_renamed(part, names) for part in parts[::2]]
    return "".join(parts)


def check_paths(paths: Sequence[Any]) -> None:
    """Raises `UserError` unless there are directories of runs, each an argument of its own."""
    if not paths:
        raise UserError("paths: expected the directory of a run, found none")
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise UserError(
                "paths: expected the directory of a run, or several as load('runs/one', "
                f"'runs/two'), found {path!r:.80}"
            )


def check_texts(named: Mapping[str, Any]) -> None:
    """Raises `UserError` unless every argument is a list of texts."""
    for name, texts in named.items():
        if isinstance(texts, str):
            raise UserError(f"{name}: expected a list of texts, found one text, {texts!r:.80}")
        if not isinstance(texts, Iterable):
            raise UserError(f"{name}: expected a list of texts, found {texts!r:.80}")
        for number, text in enumerate(texts):
            check_text(**{f"{name}[{number}]": text})


def check_text(**named: Any) -> None:
    """Raises `UserError` unless every argument is a text."""
    for name, text in named.items():
        if not isinstance(text, str):
            raise UserError(f"{name}: expected a text, found {text!r:.80}")


def check_count(**named: Any) -> None:
    """Raises `UserError` unless every argument is a whole number from 1."""
    for name, count in named.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise UserError(f"{name}: expected a number from 1, found {count!r:.80}")


def check_shown(shown: Sequence[Any]) -> None:
    """Raises `UserError` unless all is what `Run.plot` draws."""
    for one in shown:
        if not hasattr(one, "tokens"):
            raise UserError(
                "plot: expected outputs or attention, of several as plot(*outputs), found "
                f"{one!r:.80}"
            )


@contextlib.contextmanager
def _named(names: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        # In place, so that it stays of its class and keeps its traceback.
        error.args = tuple(in_arguments(str(part), names) for part in error.args)
        raise


def _renamed(text: str, names: Mapping[str, str]) -> str:
    text = _OPTION.sub(lambda match: _argument(*match.groups(), names), text)
    text = _FILE.sub(lambda match: f"{{{match[1]!r}: [...]}}", text)
    return _LINE.sub(
        lambda match: f"lines[{int(match[1]) - 1}]" if match[1] else f"gold[{int(match[2]) - 1}]",
        text,
    )


def _argument(
    name: str, path: str, value: str | None, line: str | None, names: Mapping[str, str]
) -> str:
    """Returns the argument for an option, with its value or the place in it, as Python has them."""
    place = f"[{int(line) - 1}]" if line else ""
    if name == "search" and path and value:
        return f"search={{{path[1:]!r}: {value}}}"
    if name in _GROUPS:
        return f"{name}{path}{f'={value}' if value else ''}{place}"
    argument = names.get(name, name)
    if argument == "further" and value:
        return f"further[{value!r}]{place}"
    return f"{argument}{path}{f'={value}' if value else ''}{place}"
