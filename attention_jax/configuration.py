"""Configs: from plain mappings to frozen dataclasses, with one clear line for every mistake.

Every part of the package that is driven by a config declares a frozen dataclass whose fields are
made by `setting`. `resolve` walks a mapping, or a ConfigDict (which is no `Mapping`), and finds the
class of each group, by its name where that chooses one; `typed` makes the dataclasses of what it
found, and names the field, what was expected and what was found when it cannot. A dataclass itself
refuses what its settings do not accept, so that code that makes one by hand is told, too.
"""

import dataclasses
import difflib
import functools
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from attention_jax.config_values import (
    check_limits,
    checked,
    is_optional,
    scalar,
    without_none,
)
from attention_jax.errors import ConfigError, SettingError, quoted

T = TypeVar("T")
_REQUIRED = dataclasses.MISSING


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
    members: Any = None,
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
      members: For a field that holds any number of parts by their names: a function as for `named`
        from a part's name to its dataclass.
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
        members=members,
        is_file=is_file,
    )
    metadata = {name: value for name, value in limits.items() if value is not None}
    if named is not None and isinstance(default, dict):
        factory = functools.partial(_default_named, named, default)
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

    Groups check themselves; members that are mappings become configs. An int stands for a float.

    Raises:
      SettingError: Naming the field, what was expected and what was found.
    """
    hints = _hints(type(config))
    try:
        for field in dataclasses.fields(config):
            if not isinstance(field, _Setting):
                continue
            value = getattr(config, field.name)
            if "members" in field.metadata and not isinstance(value, NamedConfigs):
                value = typed_members(field.metadata["members"], value, field.name)
                object.__setattr__(config, field.name, value)
            _check(hints[field.name], value, field.metadata, field.name)
    except ConfigError as error:
        raise SettingError(str(error)) from None


_hints = functools.cache(typing.get_type_hints)


def _check(hint: Any, value: Any, limits: Mapping[str, Any], where: str) -> None:
    if value is None and is_optional(hint):
        return
    hint = without_none(hint)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, tuple):
            raise ConfigError(f"{where}: expected a tuple, found {quoted(value)}")
        checked(hint, value, limits, where)
    elif "named" not in limits and hint in (bool, int, float, str):
        check_limits(scalar(hint, value, where), limits, where)


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
    """Configs of parts by their names; hashable, as configs are."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted((name, repr(config)) for name, config in self.items())))


def typed(cls: type[T], values: Any, where: str = "config") -> T:
    """Builds the dataclass `cls` from `values`, checking names, types and limits.

    Args:
      cls: A dataclass whose fields are annotated with scalars, other such dataclasses, mappings to
        such from names, optional scalars, or homogeneous tuples; see `renewed` for its former ones.
      values: A mapping or ConfigDict from field names to values; nested ones become nested
        dataclasses. Anything else is refused with a message.
      where: Path of `values` in the whole config, for messages.

    Returns:
      An instance of `cls`.

    Raises:
      ConfigError: Naming the field, what was expected and what was found.
    """
    return _built(resolve(cls, values, where))


def typed_members(lookup: Callable[[str], type], values: Any, where: str) -> NamedConfigs:
    """Builds the configs of parts by their names, as those of a field with `members`."""
    return _built_members(_resolve_members(lookup, values, where, None))


def resolve(cls: type, values: Any, where: str = "config", choices: Any = None) -> Group:
    """Walks a config and finds the class of each group, every name looked up once.

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
    values = renewed(cls, values)
    for name in values:
        if name not in fields:
            raise ConfigError(_unknown_field(cls, where, name, fields))
    hints, found = _hints(cls), {}
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
        return _resolve_named(limits, value, where, choices)
    hint = without_none(hint)
    if value is None:
        return None
    if dataclasses.is_dataclass(hint):
        return resolve(hint, value, where, choices)
    if "members" in limits:
        given = value
        if choices is not None and hasattr(value, "items"):
            given = choices.members(where, dict(value.items()), limits["members"])
        return _resolve_members(limits["members"], given, where, choices)
    if (member := member_class(hint)) is not None:
        return _resolve_members(lambda name: member, value, where, choices)
    return value


def _resolve_named(limits: Mapping[str, Any], value: Any, where: str, choices: Any) -> Any:
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
    if chosen is not None and chosen != fields.pop("name", None):
        fields = {field: kept for field, kept in renewed(cls, fields).items() if field in known}
    if "name" in known:
        own = known["name"]  # another than the one it was found by, where that is a former name
        is_former = isinstance(own, str) and own != name and limits["named"](own) is cls
        fields = {"name": own if is_former else name, **fields}
    return resolve(cls, fields, where, choices)


def _look_up(lookup: Callable[[str], type], name: Any, where: str) -> type:
    try:
        return lookup(name)
    except KeyError as error:
        known = error.args[0]
        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ConfigError(
            f"{where}.name: expected one of {', '.join(sorted(known))}, found {quoted(name)}{hint}"
        ) from None


def _resolve_members(
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
            raise ConfigError(unknown_name(f"{where}.{name}", name, error.args[0])) from None
        is_built = isinstance(fields, cls)
        found[name] = fields if is_built else resolve(cls, fields, f"{where}.{name}", choices)
    return found


def _built(group: Group) -> Any:
    """Makes the dataclasses of a config whose classes are found."""
    hints, arguments = _hints(group.cls), {}
    for field in dataclasses.fields(group.cls):
        where = f"{group.where}.{field.name}"
        if field.name in group.values:
            value = group.values[field.name]
            arguments[field.name] = _built_value(hints[field.name], value, field.metadata, where)
        elif field.init and field.default is _REQUIRED and field.default_factory is _REQUIRED:
            raise ConfigError(f"{where}: expected a value, found none")
    try:
        return group.cls(**arguments)
    except ValueError as error:
        raise ConfigError(f"{group.where}.{error}") from None


def _built_value(hint: Any, value: Any, limits: Mapping[str, Any], where: str) -> Any:
    if isinstance(value, Group):
        return _built(value)
    if isinstance(value, NamedConfigs):
        return _built_members(value)
    if value is None and not is_optional(hint):
        if "named" in limits:
            raise ConfigError(f"{where}: expected a group with a 'name', found None")
        if dataclasses.is_dataclass(hint):
            raise ConfigError(f"{where}: expected a group of fields, found None")
    return checked(hint, value, limits, where)


def _built_members(members: Mapping[str, Any]) -> NamedConfigs:
    return NamedConfigs(
        (name, _built(member) if isinstance(member, Group) else member)
        for name, member in members.items()
    )


def member_class(hint: Any) -> type | None:
    """Returns the dataclass of each member of a group whose members have names of the user's."""
    arguments = typing.get_args(hint)
    is_group = typing.get_origin(hint) in (dict, Mapping) and len(arguments) == 2
    return arguments[1] if is_group and dataclasses.is_dataclass(arguments[1]) else None


def _default(field: dataclasses.Field) -> Any:
    if field.default_factory is not _REQUIRED:
        return plain(field.default_factory())
    return None if field.default is _REQUIRED else plain(field.default)


def _default_named(lookup: Callable[[str], type], default: Mapping[str, Any]) -> Any:
    return _built(_resolve_named({"named": lookup}, default, "default", None))

def renewed(cls: type, values: Any) -> dict[str, Any]:
    """Returns fields as they are called now: configs of finished runs have former ones.

    Args:
      cls: The dataclass that they are of. Its `FORMER`, if it has one, names fields that are no
        more, each with the value that said nothing; its `RENAMED` names those that stand elsewhere
        now, each with its path from `cls` on.
      values: A mapping or ConfigDict. A former field beside the one that took its place stays.
    """
    former = getattr(cls, "FORMER", {})
    values = {
        name: value
        for name, value in values.items()
        if name not in former or value != former[name]
    }
    for name, path in getattr(cls, "RENAMED", {}).items():
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
    first, *rest = path
    inside = _placed(values.get(first, {}), rest, value) if rest else value
    return {**dict(values.items()), first: inside}


def _unknown_field(cls: type, where: str, name: str, known: Iterable[str]) -> str:
    renamed = getattr(cls, "RENAMED", {})
    if name in renamed:
        return f"{where}.{name}: no such field; it is {where}.{renamed[name]} now"
    return unknown_name(f"{where}.{name}", name, known)


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
