"""Overrides as choices of parts: which a command line names, adds and leaves out.

`--config.optimizer.name=sgd` chooses a part. Of groups that hold any number of parts, such as
objectives or refinements of heads, a field of one that is not there adds it, and so does its name
alone: `--config.model.attention.refinements.rope=true`, where `=false` leaves one out.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attention_jax.configuration import unknown_name
from attention_jax.errors import ConfigError, quoted

_ON, _OFF = ("true", "1", "{}"), ("false", "0", "none")


class Choices:
    """Choices: which parts of a config overrides choose, add and leave out."""

    def __init__(self, overrides: Iterable[tuple[str, Any]] = (), root: str = "config"):
        """Takes overrides apart.

        Args:
          overrides: Paths of fields in the config, and what they are set to.
          root: What the config is called in paths.
        """
        self._overrides = [(f"{root}.{path}", value) for path, value in overrides]

    def name(self, where: str) -> Any:
        """Returns the name that overrides choose for a group, or None if they leave it as it is."""
        # Of several on a command line, the last one counts.
        chosen = [value for path, value in self._overrides if path == f"{where}.name"]
        return chosen[-1] if chosen else None

    def members(
        self, where: str, given: dict[str, Any], lookup: Callable[[str], type]
    ) -> dict[str, Any]:
        """Returns the parts of a group, with those that are added and without those left out.

        Args:
          where: Path of the group.
          given: Its parts, by name.
          lookup: From the name of a part to its class; raises `KeyError` with all names.

        Raises:
          ConfigError: If there is no part of such a name, or it is set to something.
        """
        for path, value in self._overrides:
            if path == where:
                raise ConfigError(
                    f"--{where}: expected NAME=true or NAME=false behind it, with one of "
                    f"{', '.join(_known(lookup)[0])}, found {quoted(value)}"
                )
            if not path.startswith(f"{where}."):
                continue
            text = "" if value is None else str(value).lower()
            name, _, field = path.removeprefix(f"{where}.").partition(".")
            known, *own = _known(lookup)
            if name not in known:
                raise ConfigError(unknown_name(f"--{where}.{name}", name, known, *own))
            if not field and text in _OFF:
                given = {other: fields for other, fields in given.items() if other != name}
            elif field or text in _ON:
                given = {**given, name: given.get(name, {})}
            else:
                raise ConfigError(
                    f"--{where}.{name}: expected true, false, or one of its fields behind it, "
                    f"found {quoted(value)}"
                )
        return given


def _known(lookup: Callable[[str], type]) -> Sequence[Any]:
    """Returns the names of all parts, and where one of one's own would be if that is known."""
    try:
        # No part is called this: the error lists those that there are.
        lookup("")
    except KeyError as error:
        return error.args
    return [[]]
