"""Axes of a sweep: values of a field, or named settings of several fields, from a command line."""

import itertools
import re
import shlex
from collections.abc import Mapping, Sequence

from attention_jax.errors import UserError, quoted

Overrides = Mapping[str, str]  # path -> what stands behind `--config.PATH=`
# What varies: settings by their names. The name of a field's value is the value itself.
Axis = Mapping[str, Overrides]

_OPENING, _CLOSING = "([{", ")]}"
_PATH = r"[A-Za-z_][\w.]*"


class Settings(dict[str, Overrides]):
    """Settings, whose names are the user's own and stay what they are."""


def field_axis(text: str) -> Axis:
    """Reads `FIELD=VALUE,VALUE`, values as after `--config.FIELD=`; tuples have their brackets.

    Raises:
      UserError: If it is something else, or has a value twice.
    """
    match = re.fullmatch(rf"(?:config\.)?({_PATH})=(.+)", text.strip(), re.DOTALL)
    values = split_values(match[2]) if match else []
    if not match or not all(values):
        raise UserError(f"--grid: expected FIELD=VALUE,VALUE, found {quoted(text)}")
    if len(set(values)) < len(values):
        raise UserError(f"--grid: expected every value of {match[1]} once, found {match[2]}")
    return {value: {match[1]: value} for value in values}


def settings_axis(texts: Sequence[str]) -> Settings:
    """Reads settings, `NAME: FIELD=VALUE FIELD=VALUE`, each of fields that change together.

    A name alone is the config as it is.

    Raises:
      UserError: If one is something else, or a name is given twice.
    """
    found = Settings()
    for text in texts:
        name, _, rest = (part.strip() for part in text.partition(":"))
        try:
            pairs = [word.partition("=") for word in shlex.split(rest)]
        except ValueError:
            pairs = [("", "", "")]
        if not re.fullmatch(r"[\w.+-]+", name) or not all(
            re.fullmatch(_PATH, path) and value for path, _, value in pairs
        ):
            raise UserError(
                f"--setting: expected NAME: FIELD=VALUE FIELD=VALUE, found {quoted(text)}"
            )
        if name in found:
            raise UserError(f"--setting: expected every name once, found {name} twice")
        found[name] = {path.removeprefix("config."): value for path, _, value in pairs}
    return found


def split_values(text: str) -> list[str]:
    """Divides a text at its commas, but for those in brackets and quotes."""
    values, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and not depth and not quote:
            values.append("")
        else:
            values[-1] += character
    return [value.strip() for value in values]


def crossed(axes: Sequence[Axis]) -> dict[str, Overrides]:
    """Multiplies axes: the overrides of every combination of their settings, by its name.

    Values of fields are told apart by the ends of their paths, as short as they may be:
    `weight=0.1,bahdanau`.

    Raises:
      UserError: If two axes change the same field.
    """
    fields = [{path for overrides in axis.values() for path in overrides} for axis in axes]
    for one, other in itertools.combinations(fields, 2):
        if one & other:
            raise UserError(
                f"--grid: expected every field in one grid or setting, found {min(one & other)} "
                "in two"
            )
    varied = set().union(*fields)
    named = [axis if isinstance(axis, Settings) else _called(axis, varied) for axis in axes]
    return {
        ",".join(names): {path: text for each in chosen for path, text in each.items()}
        for combination in itertools.product(*(axis.items() for axis in named))
        for names, chosen in [zip(*combination, strict=True)]
    }


def _called(axis: Axis, varied: set[str]) -> Axis:
    """Returns an axis of a field's values, each called by the field and itself."""
    return {
        f"{_short(path, varied)}={value}": overrides
        for value, overrides in axis.items()
        for path in overrides
    }


def _short(path: str, paths: set[str]) -> str:
    """Returns the shortest end of a path that no other path has; of a part's `name`, the part."""
    parts = path.removesuffix(".name").split(".")
    others = [other.removesuffix(".name").split(".") for other in paths if other != path]
    for length in range(1, len(parts)):
        if all(other[-length:] != parts[-length:] for other in others):
            return ".".join(parts[-length:])
    return ".".join(parts)
