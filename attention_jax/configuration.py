"""From plain mappings to frozen dataclasses, with one clear line for every mistake.

Every part of the package that is driven by a config declares a frozen dataclass whose fields are
made by `setting`; `typed` turns a mapping, or a ConfigDict (which is no `Mapping`), into that
dataclass and names the field, what was expected and what was found when it cannot. The dataclass
itself refuses what its settings do not accept, so that code that makes one by hand is told, too.
"""

import contextlib
import dataclasses
import difflib
import functools
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from attention_jax.errors import ConfigError, SettingError, quoted

T = TypeVar("T")
_REQUIRED = dataclasses.MISSING
_LARGEST = 2**63 - 1


def setting(
    default: Any = _REQUIRED,
    *,
    choices: Iterable[Any] | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    named: Any = None,
    unnamed: str | None = None,
    is_file: bool | None = None,
) -> Any:
    """Declares a config field with its default and the values that it accepts.

    Args:
      default: Value when the config does not give one; without it the field is required.
      choices: The accepted values, if they can be listed.
      at_least: Inclusive lower bound of a number.
      at_most: Inclusive upper bound of a number.
      above: Exclusive lower bound of a number.
      below: Exclusive upper bound of a number.
      named: For a field that holds one of several dataclasses: a function from the config's
        `name` to the dataclass, raising `KeyError` with the list of names when there is none.
      unnamed: Beside `named`: what a config without a name means, where it became a choice after
        configs had been written.
      is_file: Whether the text is the path of a file or folder whose content counts, not its name.
    """
    limits = dict(
        choices=tuple(choices) if choices is not None else None,
        at_least=at_least,
        at_most=at_most,
        above=above,
        below=below,
        named=named,
        unnamed=unnamed,
        is_file=is_file,
    )
    metadata = {name: value for name, value in limits.items() if value is not None}
    if named is not None and isinstance(default, dict):
        factory = functools.partial(_named, named, default, "default")
        field = dataclasses.field(default_factory=factory, metadata=metadata)
    elif isinstance(default, dict | list):
        field = dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    else:
        field = dataclasses.field(default=default, metadata=metadata)
    field.__class__ = _Setting
    return field


class _Setting(dataclasses.Field):
    """A field whose class checks its values whenever one is made."""

    __slots__ = ()

    def __set_name__(self, owner: type, name: str) -> None:
        """Puts the check before what the class does after its values were set."""
        super().__set_name__(owner, name)
        after = getattr(owner, "__post_init__", None)
        if hasattr(after, "checks_settings"):
            return

        def __post_init__(self: Any) -> None:  # noqa: N807  (the name that dataclasses call)
            check_settings(self)
            if after is not None:
                after(self)

        __post_init__.checks_settings = True
        owner.__post_init__ = __post_init__


def check_settings(config: Any) -> None:
    """Checks a config's own values as `typed` does those of a mapping.

    Groups check themselves. An int stands for a float.

    Raises:
      SettingError: Naming the field, what was expected and what was found.
    """
    hints = _hints(type(config))
    try:
        for field in dataclasses.fields(config):
            if isinstance(field, _Setting):
                _check(hints[field.name], getattr(config, field.name), field.metadata, field.name)
    except ConfigError as error:
        raise SettingError(str(error)) from None


_hints = functools.cache(typing.get_type_hints)


def _check(hint: Any, value: Any, limits: Mapping[str, Any], where: str) -> None:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is not None or type(None) not in arguments:
            _check(arguments[0], value, limits, where)
    elif origin is tuple and isinstance(value, tuple):
        kinds = arguments[:1] * len(value) if arguments[1:] == (Ellipsis,) else arguments
        if len(kinds) != len(value):
            raise ConfigError(f"{where}: expected {len(kinds)} values, found {len(value)}")
        for index, (kind, item) in enumerate(zip(kinds, value, strict=True)):
            _check(kind, item, limits, f"{where}[{index}]")
    elif origin is tuple:
        raise ConfigError(f"{where}: expected a tuple, found {quoted(value)}")
    elif "named" not in limits and hint in (bool, int, float, str):
        _check_limits(_scalar(hint, value, where), limits, where)


def typed(cls: type[T], values: Any, where: str = "config") -> T:
    """Builds the dataclass `cls` from `values`, checking names, types and limits.

    Args:
      cls: A dataclass whose fields are annotated with scalars, other such dataclasses, optional
        scalars, or homogeneous tuples. Its `FORMER`, if it has one, names fields that it once had,
        each with the value that is ignored.
      values: A mapping or ConfigDict from field names to values; nested ones become nested
        dataclasses. Anything else is refused with a message.
      where: Path of `values` in the whole config, for messages.

    Returns:
      An instance of `cls`.

    Raises:
      ConfigError: Naming the field, what was expected and what was found.
    """
    if not hasattr(values, "items"):
        raise ConfigError(f"{where}: expected a group of fields, found {values!r}")
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
    # A field that is no more, and said nothing: configs of finished runs hold it.
    former = getattr(cls, "FORMER", {})
    values = {
        name: value
        for name, value in values.items()
        if name in fields or name not in former or value != former[name]
    }
    for name in values:
        if name not in fields:
            raise ConfigError(unknown_name(f"{where}.{name}", name, fields))
    hints = typing.get_type_hints(cls)
    arguments = {}
    for name, field in fields.items():
        if name in values:
            arguments[name] = _value(hints[name], values[name], field.metadata, f"{where}.{name}")
        elif field.default is _REQUIRED and field.default_factory is _REQUIRED:
            raise ConfigError(f"{where}.{name}: expected a value, found none")
    try:
        return cls(**arguments)
    except ValueError as error:
        raise ConfigError(f"{where}.{error}") from None


class NamedConfigs(dict):
    """Configs of parts by their names; hashable, as configs are."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted((name, repr(config)) for name, config in self.items())))


def typed_group(values: Mapping[str, Any], parts: Any, where: str) -> NamedConfigs:
    """Builds the configs of a group whose fields are names of parts, each with fields of its own.

    Args:
      values: From names to fields, or to configs.
      parts: What there is, such as a `discovery.Parts`: `names()`, and `config(name)`.
      where: Path of the group, for messages.

    Raises:
      ValueError: If there is no such part, or a field of it is wrong.
    """
    configs, known = NamedConfigs(), parts.names() if values else []
    for name, fields in values.items():
        if name not in known:
            raise ValueError(unknown_name(f"{where}.{name}", name, known))
        cls = parts.config(name)
        try:
            is_built = isinstance(fields, cls)
            configs[name] = fields if is_built else typed(cls, fields, f"{where}.{name}")
        except ConfigError as error:
            raise ValueError(str(error)) from None
    return configs


def unknown_name(where: str, name: str, known: Iterable[str]) -> str:
    """Returns the message for a name that does not exist, with the nearest that does."""
    known = sorted(known)
    if not known:
        return f"{where}: no such field; none is expected there"
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"
    return f"{where}: no such field; {hint}"


def plain(config: Any) -> Any:
    """Turns nested dataclasses back into dicts, lists and scalars, as JSON can hold them.

    A group chosen by name carries that name, so that `typed` reads the result back.
    """
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        return {
            field.name: plain(getattr(config, field.name))
            for field in dataclasses.fields(config)
            if field.init
        }
    if isinstance(config, Mapping):
        return {name: plain(value) for name, value in config.items()}
    if isinstance(config, tuple | list):
        return [plain(value) for value in config]
    return config


def _value(hint: Any, value: Any, limits: Mapping[str, Any], where: str) -> Any:
    if value is None and type(None) in typing.get_args(hint):
        return None
    if "named" in limits:
        if "unnamed" in limits and hasattr(value, "items"):
            value = {"name": limits["unnamed"], **value}
        return _named(limits["named"], value, where)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        return _value(kinds[0], value, limits, where)
    if dataclasses.is_dataclass(hint):
        return typed(hint, value, where)
    if origin is tuple:
        return _tuple(typing.get_args(hint), value, limits, where)
    if hint is Any or origin in (dict, Mapping) or hint is dict:
        if hasattr(value, "items"):
            return dict(value.items())
        if hint is not Any:
            raise ConfigError(f"{where}: expected a group of fields, found {quoted(value)}")
        return value
    value = _scalar(hint, value, where)
    _check_limits(value, limits, where)
    return value


def _named(lookup: Any, value: Any, where: str) -> Any:
    if not hasattr(value, "items"):
        raise ConfigError(f"{where}: expected a group with a 'name', found {quoted(value)}")
    fields = dict(value.items())
    if "name" not in fields:
        raise ConfigError(f"{where}.name: expected a value, found none")
    name = fields.pop("name")
    try:
        cls = lookup(name)
    except KeyError as error:
        known = error.args[0]
        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ConfigError(
            f"{where}.name: expected one of {', '.join(sorted(known))}, found {quoted(name)}{hint}"
        ) from None
    has_name = "name" in {field.name for field in dataclasses.fields(cls)}
    return typed(cls, {"name": name, **fields} if has_name else fields, where)


def _tuple(kinds: tuple[Any, ...], value: Any, limits: Mapping[str, Any], where: str) -> Any:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"{where}: expected a sequence, found {quoted(value)}")
    items = tuple(value)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(items)
    if len(kinds) != len(items):
        raise ConfigError(f"{where}: expected {len(kinds)} values, found {len(items)}")
    return tuple(
        _value(kind, item, limits, f"{where}[{index}]")
        for index, (kind, item) in enumerate(zip(kinds, items, strict=True))
    )


def _scalar(hint: Any, value: Any, where: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            value = float(value)
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


def _check_limits(value: Any, limits: Mapping[str, Any], where: str) -> None:
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
        near = difflib.get_close_matches(str(value), [str(choice) for choice in choices], n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ConfigError(f"{where}: expected one of {listed}, found {quoted(value)}{hint}")
