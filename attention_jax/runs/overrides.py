"""Config overrides on the command line: `--config.FIELD=VALUE`, checked one by one."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from absl import flags
from ml_collections import ConfigDict, config_dict, config_flags

from attention_jax.errors import ConfigError, quoted
from attention_jax.runs import mistakes

Override = tuple[str, str | None]

_UNSET = "None"


def define_overrides(
    argv: Sequence[str], name: str, values: ConfigDict, found: flags.FlagValues | None = None
) -> list[str]:
    """Config overrides: defines `--NAME.FIELD` for every field, and checks those that are given.

    `found[name].value` then holds the values with their overrides, where `found` is `flags.FLAGS`
    unless given. The value `None` unsets a number or a group; whether it may be unset is checked
    where the config is read.

    Returns:
      The arguments that are left to be parsed as flags.

    Raises:
      ConfigError: If there is no such field, or its value is of the wrong type.
    """
    # Before absl sees them: it has no flags for whole parts, and no way to write None.
    argv = _without_parts(argv, name, values)
    argv = _without_nones(argv, name, values)
    for path, text in listed(argv, name):
        _check(values, name, path, text)
    found = flags.FLAGS if found is None else found
    config_flags.DEFINE_config_dict(name, values, flag_values=found, sys_argv=argv)
    return argv


def overridden(values: ConfigDict, name: str, overrides: Iterable[tuple[str, str]]) -> ConfigDict:
    """Config overrides: returns a completed config with the values of (path, text) put in.

    Args:
      values: The config, made with the parts that the overrides choose.
      name: What it is called in messages.
      overrides: What stands on a command line as `--NAME.PATH=TEXT`.

    Raises:
      ConfigError: If there is no such field, or its value is of the wrong type.
    """
    found = flags.FlagValues()
    argv = ["", *(f"--{name}.{path}={text}" for path, text in overrides)]
    argv = define_overrides(argv, name, values, found)
    try:
        found(argv)
    except flags.Error as error:
        raise ConfigError(mistakes.illegal_value(error, found)) from None
    except (ValueError, TypeError) as error:
        raise ConfigError(" ".join(str(error).split())) from None
    return found[name].value


def listed(argv: Sequence[str], name: str) -> list[Override]:
    """Config overrides: lists `--name.path=text`, `--name.path text`, `--noname.path` as pairs.

    A pair is (path, text). The text is None if there is a path alone, and `false` for `--no`.
    """
    return [override for _, override in _parts(argv[1:], name) if override is not None]


def _parts(
    arguments: Sequence[str], name: str
) -> Iterator[tuple[Sequence[str], Override | None]]:
    """Divides a command line into other arguments and overrides, of one argument or two."""
    # The last argument is followed by something that looks like an option, thus by no value.
    pairs = itertools.zip_longest(arguments, arguments[1:], fillvalue="--")
    for argument, following in pairs:
        if match := re.fullmatch(rf"--?{name}\.([^=]+)(?:=(.*))?", argument, re.DOTALL):
            if match[2] is not None:
                yield [argument], (match[1], match[2])
            elif following.startswith("--"):
                yield [argument], (match[1], None)
            else:
                next(pairs)  # the value is no argument of its own
                yield [argument, following], (match[1], following)
        elif match := re.fullmatch(rf"--?no{name}\.([^=]+)", argument):
            yield [argument], (match[1], "false")
        else:
            yield [argument], None


def _without_parts(argv: Sequence[str], name: str, values: ConfigDict) -> list[str]:
    """Removes overrides that add or remove a whole part: `values` has been made by them already."""
    from attention_jax.runs.config import names_part

    left = [
        argument
        for arguments, override in _parts(argv[1:], name)
        if override is None or not names_part(values, override[0])
        for argument in arguments
    ]
    return [argv[0], *left]


def _without_nones(argv: Sequence[str], name: str, values: ConfigDict) -> list[str]:
    """Unsets numbers and groups that are overridden by `None`; returns the other arguments.

    As always the last override of a field wins: those before its `None` are removed as well.
    """
    parts = list(_parts(argv[1:], name))
    last: dict[str, int] = {}
    for place, (_, override) in enumerate(parts):
        if override is not None and override[1] == _UNSET and _unset(values, name, override[0]):
            last[override[0]] = place
    left = [
        argument
        for place, (arguments, override) in enumerate(parts)
        if override is None or place > last.get(override[0], -1)
        for argument in arguments
    ]
    return [argv[0], *left]


def _unset(values: ConfigDict, name: str, path: str) -> bool:
    """Makes a field an empty placeholder of its type; returns False if `None` is just a text."""
    parent, field = _find(values, name, path)
    kind = parent.get_type(field)
    if issubclass(kind, str | tuple | list):
        return False
    # A placeholder can still be set by a later override, which is checked against its type.
    with parent.unlocked():
        del parent[field]
        parent[field] = config_dict.placeholder(kind)
    return True


def _find(values: ConfigDict, name: str, path: str) -> tuple[ConfigDict, str]:
    """Finds a field by its path; returns its group and its name in the group.

    Raises:
      ConfigError: If there is no such field.
    """
    group, where, parts = values, name, path.split(".")
    for place, part in enumerate(parts):
        if not isinstance(group, ConfigDict):
            raise ConfigError(f"--{where}.{part}: no such field; {where} is a single value")
        if part not in group.keys():
            if now := _present(values, path):
                raise ConfigError(f"--{name}.{path}: no such field; it is --{name}.{now} now")
            below = parts[place + 1] if place + 1 < len(parts) else None
            raise ConfigError(mistakes.unknown_field(values, name, where, part, below))
        where, parent, group = f"{where}.{part}", group, group[part]
    return parent, parts[-1]


def _present(values: ConfigDict, path: str) -> str | None:
    """Returns the present path of a field that has been renamed, or None."""
    from attention_jax.runs.config import present_path

    now, group = present_path(path), values
    for part in now.split("."):
        if not isinstance(group, ConfigDict) or part not in group.keys():
            return None
        group = group[part]
    return now if now != path else None


def _check(values: ConfigDict, name: str, path: str, text: str | None) -> None:
    """Raises `ConfigError` unless an override names a single field and its text fits the type."""
    parent, field = _find(values, name, path)
    where, kind, found = f"{name}.{path}", parent.get_type(field), parent[field]
    if isinstance(found, ConfigDict):
        fields = ", ".join(sorted(found.keys()))
        has_name = text and "name" in found.keys()
        hint = f"; --{where}.name={text} chooses another" if has_name else ""
        raise ConfigError(
            f"--{where}: expected one of its fields ({fields}), found the group{hint}"
        )
    if issubclass(kind, ConfigDict):
        hint = f"--{where}.name={quoted(text)[1:-1]}" if text else f"--{where}.name"
        raise ConfigError(f"--{where}: expected one of its fields, such as {hint}, found the group")
    if text is not None and not _fits(kind, text):
        raise ConfigError(f"--{where}: expected {kind.__name__}, found {quoted(text)}")


def _fits(kind: type, text: str) -> bool:
    """Says whether a text can be read as a type; texts and sequences are left to absl."""
    if kind is bool:
        return text.lower() in ("true", "false", "1", "0", "t", "f")
    if kind not in (int, float):
        return True
    try:
        kind(text)
    except ValueError:
        return False
    return True
