"""JSON files, whoever wrote them: read, and checked against the shape that they must have.

A shape is what the value looks like:

    str, int, float, bool, None   a value of this type; whole numbers are numbers too
    {"joint", "source"}           one of these texts
    [shape]                       a list of such values
    {str: shape}                  an object of such values, whatever their names
    {"name": shape, ...}          an object with these, and maybe with others
    Maybe(shape)                  in an object: may also be missing
    (shape, shape)                either of these
    object                        anything
"""

import dataclasses
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attention_jax.errors import DataError, UserError

Shape = Any
MOST_LEVELS = 100  # of values within values; Python counts the calls that look at them
_HALF = re.compile("[\ud800-\udfff]")  # half a pair of UTF-16, which JSON can hold, and no file
_LARGEST = {int: 2**63 - 1, float: sys.float_info.max}
_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false",
          None: "null", dict: "an object", list: "a list"}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Maybe:
    """Optional value: the shape of one that an object need not have."""

    shape: Shape


# A line of a run's `metrics.jsonl`.
METRICS_LINE: Shape = {"step": int, "split": str, str: (float, str, bool, None)}


def read_json(
    path: str | os.PathLike, shape: Shape = object, error: type[UserError] = DataError
) -> Any:
    """Reads a JSON file, and checks its value against a shape.

    Args:
      path: The file.
      shape: That of what it holds.
      error: What is raised where it is not.

    Raises:
      FileNotFoundError: If there is no such file.
      UserError: An `error` if it cannot be read, is no JSON, or is of another shape.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise
    except OSError as reason:
        raise error(f"{path} cannot be read: {reason.strerror}") from None
    return parse_json(content, shape, str(path), error)


def parse_json(
    content: bytes | str,
    shape: Shape = object,
    where: str = "text",
    error: type[UserError] = DataError,
) -> Any:
    """Parses a JSON text, which `where` names in messages; the rest is as for `read_json`."""
    try:
        value = json.loads(content if isinstance(content, str) else content.decode("utf-8"))
        is_deep = _is_deep(value)
    except RecursionError:
        is_deep = True
    except ValueError as reason:
        raise error(f"{where}: expected JSON, found something else ({reason})") from None
    if is_deep:
        raise error(f"{where}: expected at most {MOST_LEVELS} values within values, found more")
    if problem := mismatch(value, shape):
        raise error(f"{where}: {problem}")
    return value


def read_json_lines(
    path: str | os.PathLike, shape: Shape = object, error: type[UserError] = DataError
) -> list[tuple[str, Any]]:
    """Reads JSON lines: returns each line that is JSON, and its value.

    Lines that are no JSON are left out: a process that is killed leaves half a line behind, which
    the next one writes on after.

    Args:
      path: The file.
      shape: That of the value of every line.
      error: As for `read_json`.

    Raises:
      UserError: An `error`, naming the line, if a value is of another shape.
    """
    # Half a character at the end of a file that was cut off must not hide the lines before it.
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        lines = [line.rstrip("\r\n") for line in file]
    return [
        (line, parse_json(line, shape, f"{path}:{number}", error))
        for number, line in enumerate(lines, start=1)
        if _is_json(line)
    ]


def mismatch(value: Any, shape: Shape, place: str = "") -> str | None:
    """Returns where a value first differs from a shape, and how; None if it does not."""
    if shape is object:
        return None
    if isinstance(shape, tuple):
        found = [mismatch(value, each, place) for each in shape]
        words = " or ".join(map(_name, shape))
        return None if None in found else _difference(words, place, value)
    if shape is None or isinstance(shape, type | set):
        return None if _is_one(value, shape) else _difference(_name(shape), place, value)
    if not isinstance(value, type(shape)):
        return _difference(_name(type(shape)), place, value)
    return next(filter(None, _mismatches(value, shape, place)), None)


def _mismatches(value: Any, shape: Shape, place: str) -> Iterator[str | None]:
    """Yields the first mismatch, or None, of each member of an object or of a list."""
    if isinstance(shape, list):
        for number, member in enumerate(value):
            yield mismatch(member, shape[0], f"{place}[{number}]")
        return
    for name, expected in shape.items():
        members = value if name is str else {name: value[name]} if name in value else {}
        if not members and name is not str and not isinstance(expected, Maybe):
            yield _difference(f"a value named {name!r}", place, value, "none")
        for key, member in members.items():
            inner = expected.shape if isinstance(expected, Maybe) else expected
            yield mismatch(member, inner, f"{place}.{key}" if place else key)


def _is_one(value: Any, shape: Shape) -> bool:
    """Whether a single value is of a type, or one of a set."""
    if isinstance(shape, set):
        return isinstance(value, str) and value in shape
    if shape is None or isinstance(value, bool):
        return value is None if shape is None else shape is bool
    # A whole number stands for a float; JSON does not tell them apart.
    kinds = (int, float) if shape is float else shape
    if not isinstance(value, kinds):
        return False
    if isinstance(value, str):
        return _HALF.search(value) is None
    return not isinstance(value, int) or abs(value) <= _LARGEST[shape]


def _name(shape: Shape) -> str:
    if isinstance(shape, set):
        return f"one of {', '.join(sorted(shape))}"
    return _NAMES.get(shape if isinstance(shape, type | None) else type(shape), "a value")


def _difference(expected: str, place: str, value: Any, found: str | None = None) -> str:
    if found is None:
        found = _NAMES[type(value)] if isinstance(value, dict | list) else _brief(value)
    return f"expected {expected}{place and f' at {place:.60}'}, found {found}"


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _is_deep(value: Any) -> bool:
    """Whether values are within values more than `MOST_LEVELS` times."""
    # Level by level, not by recursion, which a value of that depth would exhaust.
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [
            member
            for each in level
            if isinstance(each, dict | list)
            for member in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True
