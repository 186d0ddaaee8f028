"""Configs: from plain mappings to frozen dataclasses, with one clear line for every mistake.

Every part of the package that is driven by a config declares a frozen dataclass whose fields are
made by `setting`; `typed` turns a mapping, or a ConfigDict (which is no `Mapping`), into that
dataclass and names the field, what was expected and what was found when it cannot. The dataclass
itself refuses what its settings do not accept, so that code which makes one by hand is checked too.
"""

import dataclasses
import functools
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from attention_jax.config_values import (
    check_limits,
    checked,
    is_optional,
    scalar,
    without_none,
)
from attention_jax.config_walk import (
    Group,
    NamedConfigs,
    hints_of,
    plain,
    resolve,
    resolve_members,
    resolve_named,
    unknown_name,
)
from attention_jax.errors import ConfigError, SettingError, at_field, quoted

__all__ = [
    "NamedConfigs", "check_settings", "plain", "setting", "typed", "typed_members", "unknown_name"
]  # fmt: skip

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
      choices: The accepted values, if they can be listed; its `own`, if any, says where one of the
        user's own would be.
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
        own=getattr(choices, "own", None),
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
        # Built when a config is made, not when the module is imported: parts import one another.
        factory = functools.partial(_default_named, named, default)
        field = dataclasses.field(default_factory=factory, metadata=metadata)
    elif isinstance(default, dict | list):
        field = dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    else:
        field = dataclasses.field(default=default, metadata=metadata)
    # `dataclasses.field` has no hook for a subclass; the instance becomes one afterwards.
    field.__class__ = _Setting
    return field


class _Setting(dataclasses.Field):
    """A field whose class checks its values whenever one is made."""

    __slots__ = ()

    def __set_name__(self, owner: type, name: str) -> None:
        """Puts the check before what the class does after its values were set."""
        super().__set_name__(owner, name)
        after = getattr(owner, "__post_init__", None)
        # Each setting of a class comes here; the first one has wrapped the method for all.
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
    hints = hints_of(type(config))
    try:
        for field in dataclasses.fields(config):
            if not isinstance(field, _Setting):
                continue
            value = getattr(config, field.name)
            if "members" in field.metadata and not isinstance(value, NamedConfigs):
                value = typed_members(field.metadata["members"], value, field.name)
                # The dataclass is frozen, but nobody else has seen it yet.
                object.__setattr__(config, field.name, value)
            _check(hints[field.name], value, field.metadata, field.name)
    except ConfigError as error:
        raise SettingError(str(error)) from None


def _check(hint: Any, value: Any, limits: Mapping[str, Any], where: str) -> None:
    if value is None and is_optional(hint):
        return
    hint = without_none(hint)
    if "named" in limits:
        if not dataclasses.is_dataclass(value):
            raise ConfigError(f"{where}: expected the config of a part, found {quoted(value)}")
    elif typing.get_origin(hint) is tuple:
        if not isinstance(value, tuple):
            raise ConfigError(f"{where}: expected a tuple, found {quoted(value)}")
        checked(hint, value, limits, where)
    elif hint in (bool, int, float, str):
        check_limits(scalar(hint, value, where), limits, where)


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
    # Classes first, values after: an unknown name is reported before a wrong value.
    return _built(resolve(cls, values, where))


def typed_members(lookup: Callable[[str], type], values: Any, where: str) -> NamedConfigs:
    """Builds the configs of parts by their names, as those of a field with `members`."""
    return _built_members(resolve_members(lookup, values, where, None))


def _built(group: Group) -> Any:
    """Makes the dataclasses of a config whose classes are found."""
    hints, arguments = hints_of(group.cls), {}
    for field in dataclasses.fields(group.cls):
        where = f"{group.where}.{field.name}"
        if field.name in group.values:
            value = group.values[field.name]
            arguments[field.name] = _built_value(hints[field.name], value, field.metadata, where)
        elif field.init and field.default is _REQUIRED and field.default_factory is _REQUIRED:
            raise ConfigError(f"{where}: expected a value, found none")
    try:
        return group.cls(**arguments)
    # From `__post_init__`, which knows its fields but not where it stands in the whole config.
    except ValueError as error:
        raise at_field(group.where, error) from None


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


def _default_named(lookup: Callable[[str], type], default: Mapping[str, Any]) -> Any:
    return _built(resolve_named({"named": lookup}, default, "default", None))
