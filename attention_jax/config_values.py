"""Values of a config: whether a number, text or tuple is of the type and size that is accepted."""

import contextlib
import difflib
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from attention_jax.errors import ConfigError, quoted

_LARGEST = 2**63 - 1


def is_optional(hint: Any) -> bool:
    """Whether a type takes None."""
    return type(None) in typing.get_args(hint)


def without_none(hint: Any) -> Any:
    """Returns what else than None a type takes."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    return next(kind for kind in typing.get_args(hint) if kind is not type(None))


def checked(hint: Any, value: Any, limits: Mapping[str, Any], where: str) -> Any:
    """Returns a value as its field has it: a list as a tuple, a whole number as a float.

    Args:
      hint: The field's type.
      value: What a config says.
      limits: The field's, by the keywords of `setting`.
      where: Path of the value, for messages.

    Raises:
      ConfigError: If it is of another type, or not among what is accepted.
    """
    if value is None and is_optional(hint):
        return None
    hint = without_none(hint)
    origin = typing.get_origin(hint)
    # JSON knows no tuples: a resolved config that is read back has lists in their places.
    if origin is tuple:
        return _tuple(typing.get_args(hint), value, limits, where)
    if hint is Any or origin in (dict, Mapping) or hint is dict:
        # A ConfigDict is no `Mapping`.
        if hasattr(value, "items"):
            return dict(value.items())
        if hint is not Any:
            raise ConfigError(f"{where}: expected a group of fields, found {quoted(value)}")
        return value
    value = scalar(hint, value, where)
    check_limits(value, limits, where)
    return value


def _tuple(kinds: tuple[Any, ...], value: Any, limits: Mapping[str, Any], where: str) -> Any:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"{where}: expected a sequence, found {quoted(value)}")
    items = tuple(value)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        # tuple[int, ...]: any number of one kind.
        kinds = (kinds[0],) * len(items)
    if len(kinds) != len(items):
        raise ConfigError(f"{where}: expected {len(kinds)} values, found {len(items)}")
    return tuple(
        checked(kind, item, limits, f"{where}[{index}]")
        for index, (kind, item) in enumerate(zip(kinds, items, strict=True))
    )


def scalar(hint: Any, value: Any, where: str) -> Any:
    """Returns a number or text as its field has it; raises `ConfigError` for another type."""
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            value = float(value)
    # A bool is an int to Python, and hardly ever what was meant.
    if hint is int and isinstance(value, bool):
        raise ConfigError(f"{where}: expected int, found {quoted(value)}")
    if not isinstance(value, hint):
        raise ConfigError(f"{where}: expected {hint.__name__}, found {quoted(value)}")
    if hint is float and not math.isfinite(value):
        raise ConfigError(f"{where}: expected a finite number, found {value}")
    if hint is str and ("\0" in value or not _is_utf8(value)):
        raise ConfigError(f"{where}: expected UTF-8 text without NUL, found {quoted(value)}")
    return value


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair, or a byte of a file's name
        return False
    return True


def _number(limit: float) -> str:
    return f"{limit:g}" if isinstance(limit, float) else str(limit)


def check_limits(value: Any, limits: Mapping[str, Any], where: str) -> None:
    """Raises `ConfigError` for a value that a field does not accept."""
    checks = (
        ("at_least", lambda limit: value >= limit, "at least"),
        ("at_most", lambda limit: value <= limit, "at most"),
        ("above", lambda limit: value > limit, "more than"),
        ("below", lambda limit: value < limit, "less than"),
    )
    for name, holds, words in checks:
        if name in limits and not holds(limits[name]):
            limit = _number(limits[name])
            raise ConfigError(f"{where}: expected {words} {limit}, found {quoted(value)}")
    if isinstance(value, int) and not -_LARGEST - 1 <= value <= _LARGEST:
        raise ConfigError(f"{where}: expected a number of 64 bits, found {quoted(value)}")
    choices = limits.get("choices")
    if choices is not None and value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        # Compared as text, since a choice may be a number.
        near = difflib.get_close_matches(str(value), [str(choice) for choice in choices], n=1)
        hints = [f"did you mean {near[0]!r}?"] if near else filter(None, [limits.get("own")])
        hint = "".join(f" ({each})" for each in hints)
        raise ConfigError(f"{where}: expected one of {listed}, found {quoted(value)}{hint}")
