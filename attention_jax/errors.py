"""Errors that a user can mend: programs print them as one line and exit with code 2."""

import re

_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class UserError(Exception):
    """What the user gave is wrong; the message says what, expected, found and where."""

    def __str__(self) -> str:
        """Returns the message in one line, whatever is in the names of files that it quotes."""
        return _BREAKS.sub(lambda match: ascii(match[0])[1:-1], super().__str__())


class ConfigError(UserError):
    """A config field is unknown, of the wrong type, or has an impossible value."""


class DataError(UserError):
    """A data file is missing, malformed, or not what its checksum says."""


class CheckpointError(UserError):
    """A checkpoint is missing, damaged, or belongs to another model."""


class RunDirectoryError(UserError):
    """A run directory cannot be written, or holds another experiment."""
