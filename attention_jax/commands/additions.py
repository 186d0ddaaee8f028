"""Parts of a config that only the command line names: further groups, objectives, refinements.

An objective is added by one of its fields, and so is a predictor of the model. So is a refinement
of heads, or by its name alone:
`--config.model.attention.refinements.rope=true`, and `=false` leaves out one that the file has.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ml_collections import ConfigDict

from attention_jax.configuration import unknown_name
from attention_jax.errors import ConfigError, quoted

_ON, _OFF = ("true", "1", "{}"), ("false", "0", "none")
_SWITCH = re.compile(r"--?config\.((?:[^=]+\.)?refinements)(?:\.([^.=]+))?=(.*)", re.DOTALL)


def with_groups(values: ConfigDict, overrides: Iterable[tuple[str, Any]]) -> ConfigDict:
    """Adds the groups that only overrides name, by `GROUP.name`, to the groups that there are.

    Args:
      values: A config as its file returns it.
      overrides: Paths of fields, and what they are set to.
    """
    values = ConfigDict(values).unlock()
    for path, name in overrides:
        *parents, group, field = ("", *path.split("."))
        place = _find(values, parents[1:])
        if field == "name" and group and place is not None and place.get(group) is None:
            place[group] = ConfigDict({"name": name})
    return values


def with_refinements(
    argv: Sequence[str], values: ConfigDict
) -> tuple[list[str], ConfigDict]:
    """Adds and leaves out the refinements that a command line names without a field.

    Args:
      argv: The command line.
      values: A config as its file returns it.

    Returns:
      The rest of the command line, and the config.

    Raises:
      ConfigError: If there is no refinement of such a name, or it is set to something else.
    """
    from attention_jax.layers.refinement import REFINEMENTS

    values, left = ConfigDict(values).unlock(), []
    for argument in argv:
        match = _SWITCH.fullmatch(argument)
        if match is None:
            left.append(argument)
            continue
        path, name, text = match.groups()
        if name is None:
            raise ConfigError(
                f"--config.{path}: expected NAME=true or NAME=false behind it, with one of "
                f"{', '.join(REFINEMENTS.names())}, found {quoted(text)}"
            )
        if text.lower() not in (*_ON, *_OFF):
            raise ConfigError(
                f"--config.{path}.{name}: expected true, false, or one of its fields behind it, "
                f"found {quoted(text)}"
            )
        group = _add_refinement(values, [*path.split("."), name])
        if group is None:
            left.append(argument)
        elif text.lower() in _OFF:
            del group.refinements[name]
    return left, values


def with_additions(values: ConfigDict, paths: Iterable[str]) -> ConfigDict:
    """Adds the objectives, predictors and refinements that only overrides name, by a field.

    Args:
      values: A config as its file returns it.
      paths: The overridden fields, such as `objectives.coverage_penalty.weight`.

    Raises:
      ConfigError: If there is no objective, predictor or refinement of such a name.
    """
    from attention_jax.objectives.compose import OBJECTIVES

    known = None
    values = ConfigDict(values).unlock()
    for path in paths:
        parts = path.split(".")
        if "refinements" in parts[:-2]:
            _add_refinement(values, parts)
        if parts[:2] == ["model", "predictors"] and len(parts) > 3:
            _add_predictor(values, parts[2])
        if parts[0] == "objectives" and len(parts) > 2:
            known = known or OBJECTIVES.names()
            if "objectives" not in values:
                values.objectives = ConfigDict({"nll": {}})
            if parts[1] not in known:
                where = f"--config.objectives.{parts[1]}"
                raise ConfigError(unknown_name(where, parts[1], known))
            if parts[1] not in values.objectives:
                values.objectives[parts[1]] = ConfigDict()
    return values


def _add_predictor(values: ConfigDict, name: str) -> None:
    """Adds the predictor of a name to the model, with its fields as they are by default."""
    from attention_jax.configuration import plain
    from attention_jax.layers.predictor import PREDICTORS

    model = _find(values, ["model"])
    if model is None:
        return
    if name not in PREDICTORS.names():
        where = f"--config.model.predictors.{name}"
        raise ConfigError(unknown_name(where, name, PREDICTORS.names()))
    present = model.get("predictors", ConfigDict())
    given = present.get(name, ConfigDict()).to_dict()
    present[name] = ConfigDict({**plain(PREDICTORS.config(name)()), **given})
    model.predictors = present


def _add_refinement(values: ConfigDict, parts: Sequence[str]) -> ConfigDict | None:
    """Adds the refinement that a path names, if what is before it in the config takes any.

    Returns:
      The group that it was added to, or None: whoever checks the override will say why.
    """
    from attention_jax.configuration import plain
    from attention_jax.layers.refinement import REFINEMENTS

    place = parts.index("refinements")
    group, name = _find(values, parts[:place]), parts[place + 1]
    if group is None:
        return None
    if name not in REFINEMENTS.names():
        where = "--config." + ".".join(parts[: place + 2])
        raise ConfigError(unknown_name(where, name, REFINEMENTS.names()))
    present = group.get("refinements", ConfigDict())
    given = present.get(name, ConfigDict()).to_dict()
    present[name] = ConfigDict({**plain(REFINEMENTS.config(name)()), **given})
    group.refinements = present
    return group


def _find(values: ConfigDict, path: Iterable[str]) -> ConfigDict | None:
    """Returns the group at a path, or None where there is no group."""
    group = values
    for part in path:
        group = group.get(part)
        if not isinstance(group, ConfigDict):
            return None
    return group
