"""The walk through a config: which class each group of it is of, every name looked up once.

What is found is a tree of `Group`, of which `configuration.typed` makes dataclasses, and
`runs.config.template` what overrides are written into.
"""

import dataclasses
import difflib
import functools
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from attention_jax.config_values import without_none
from attention_jax.errors import ConfigError, quoted

# Resolving annotations evaluates them: slow enough to do once a class.
hints_of = functools.cache(typing.get_type_hints)


class Group(NamedTuple):
    """A group of a config, its class found and its values not yet checked.

    Attributes:
      cls: The dataclass.
      values: What is given of its fields; groups in it are of this class, too.
      where: Its path in the whole config, for messages.
    """

    cls: type
    values: Mapping[str, Any]
    where: str


class NamedConfigs(dict):
    """Named configs: parts by their names; hashable, as configs have to be under jit."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted((name, repr(config)) for name, config in self.items())))


def resolve(cls: type, values: Any, where: str = "config", choices: Any = None) -> Group:
    """Resolves a config: walks it and finds the class of each group, every name looked up once.

    Args:
      cls: The dataclass of the whole.
      values: A mapping or ConfigDict from field names to values.
      where: Path of `values` in the whole config, for messages.
      choices: What a command line chooses, a `config_choices.Choices`. Fields that are not given
        then have their defaults, so that these can be chosen from, too.

    Raises:
      ConfigError: If something is no group, or there is no such field or part.
    """
    if not hasattr(values, "items"):
        raise ConfigError(f"{where}: expected a group of fields, found {quoted(values)}")
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
    # Before anything is refused: what a finished run wrote is read under its present name.
    values = renewed(cls, values)
    for name in values:
        if name not in fields:
            raise ConfigError(_unknown_field(cls, where, name, fields))
    hints, found = hints_of(cls), {}
    for name, field in fields.items():
        if name in values or choices is not None:
            value = values[name] if name in values else _default(field)
            path = f"{where}.{name}"
            found[name] = _resolve_value(hints[name], value, field.metadata, path, choices)
    return Group(cls, found, where)


def _resolve_value(
    hint: Any, value: Any, limits: Mapping[str, Any], where: str, choices: Any
) -> Any:
    if "named" in limits:
        return resolve_named(limits, value, where, choices)
    hint = without_none(hint)
    if value is None:  # which may be overridden yet; `configuration.typed` refuses it otherwise
        return None
    if dataclasses.is_dataclass(hint):
        return resolve(hint, value, where, choices)
    if "members" in limits:
        given = value
        if choices is not None and hasattr(value, "items"):
            given = choices.members(where, dict(value.items()), limits["members"])
        return resolve_members(limits["members"], given, where, choices)
    if (member := member_class(hint)) is not None:
        return resolve_members(lambda name: member, value, where, choices)
    return value


def resolve_named(limits: Mapping[str, Any], value: Any, where: str, choices: Any) -> Any:
    """Finds the class that a group's name chooses, by a function among the field's limits."""
    chosen = None if choices is None else choices.name(where)
    if value is None and chosen is None:
        return None
    value = {} if value is None else value
    if not hasattr(value, "items"):
        raise ConfigError(f"{where}: expected a group with a 'name', found {quoted(value)}")
    default = {"name": limits["unnamed"]} if "unnamed" in limits else {}
    fields = {**default, **dict(value.items())}
    if chosen is None and "name" not in fields:
        raise ConfigError(f"{where}.name: expected a value, found none")
    name = fields.pop("name", None) if chosen is None else chosen
    cls = _look_up(limits["named"], name, where)
    known = {field.name: field.default for field in dataclasses.fields(cls)}
    if chosen is not None and chosen != fields.pop("name", None):  # another: keep what both have
        fields = {field: kept for field, kept in renewed(cls, fields).items() if field in known}
    # A class with a field for its name keeps it: the resolved config says what was chosen.
    if "name" in known:
        own = known["name"]  # another than the one it was found by, where that is a former name
        is_former = isinstance(own, str) and own != name and limits["named"](own) is cls
        fields = {"name": own if is_former else name, **fields}
    return resolve(cls, fields, where, choices)


def _look_up(lookup: Callable[[str], type], name: Any, where: str) -> type:
    try:
        return lookup(name)
    except KeyError as error:
        known, *own = error.args
        near = difflib.get_close_matches(str(name), known, n=1)
        hints = [f"did you mean {near[0]!r}?"] if near else own
        hint = f" ({hints[0]})" if hints else ""
        raise ConfigError(
            f"{where}.name: expected one of {', '.join(sorted(known))}, found {quoted(name)}{hint}"
        ) from None


def resolve_members(
    lookup: Callable[[str], type], values: Any, where: str, choices: Any
) -> NamedConfigs:
    """Finds the classes of parts by their names; those that are configs already stay."""
    if not hasattr(values, "items"):
        raise ConfigError(f"{where}: expected a group of fields, found {quoted(values)}")
    found = NamedConfigs()
    for name, fields in values.items():
        try:
            cls = lookup(name)
        except KeyError as error:
            raise ConfigError(unknown_name(f"{where}.{name}", name, *error.args)) from None
        is_built = isinstance(fields, cls)
        found[name] = fields if is_built else resolve(cls, fields, f"{where}.{name}", choices)
    return found


def member_class(hint: Any) -> type | None:
    """Returns the dataclass of each member of a group whose members have names of the user's."""
    arguments = typing.get_args(hint)
    is_group = typing.get_origin(hint) in (dict, Mapping) and len(arguments) == 2
    return arguments[1] if is_group and dataclasses.is_dataclass(arguments[1]) else None


def _default(field: dataclasses.Field) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return plain(field.default_factory())
    return None if field.default is dataclasses.MISSING else plain(field.default)


def renewed(cls: type, values: Any) -> dict[str, Any]:
    """Returns fields as they are called now: configs of finished runs have former ones.

    Args:
      cls: The dataclass that they are of. Its `FORMER`, if any, names fields that are no more, each
        with the value that changed nothing; its `RENAMED` names those that stand elsewhere now,
        each with its path from `cls` on.
      values: A mapping or ConfigDict. A former field beside the one that took its place stays.
    """
    former = getattr(cls, "FORMER", {})
    values = {
        name: value
        for name, value in values.items()
        if name not in former or value != former[name]
    }
    for name, path in getattr(cls, "RENAMED", {}).items():
        # The present name wins where a config has both.
        if name in values and not _is_given(values, path.split(".")):
            values = _placed(values, path.split("."), values.pop(name))
    return values


def _is_given(values: Any, path: list[str]) -> bool:
    for name in path:
        if not hasattr(values, "items") or name not in values:
            return False
        values = values[name]
    return True


def _placed(values: Any, path: list[str], value: Any) -> dict[str, Any]:
    """Puts a value at a path of groups, which are made where there are none."""
    # Copies along the path; the config that was given is not changed.
    first, *rest = path
    inside = _placed(values.get(first, {}), rest, value) if rest else value
    return {**dict(values.items()), first: inside}


def _unknown_field(cls: type, where: str, name: str, known: Iterable[str]) -> str:
    renamed = getattr(cls, "RENAMED", {})
    if name in renamed:
        return f"{where}.{name}: no such field; it is {where}.{renamed[name]} now"
    return unknown_name(f"{where}.{name}", name, known)


def unknown_name(where: str, name: str, known: Iterable[str], own: str = "") -> str:
    """Returns the message for a name that does not exist, with the nearest that does.

    Args:
      where: Its path.
      name: The name.
      known: Those that exist.
      own: Where a part of the user's own would be found.
    """
    known = sorted(known)
    if not known:
        return f"{where}: no such field; none is expected there"
    near = difflib.get_close_matches(name, known, n=1)
    listed = f"expected one of {', '.join(known)}{f' ({own})' if own else ''}"
    hint = f"did you mean {near[0]!r}?" if near else listed
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
