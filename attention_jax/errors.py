"""Errors that a user can mend: programs print them as one line and exit with code 2."""


class UserError(Exception):
    """What the user gave is wrong; the message says what, expected, found and where."""


class ConfigError(UserError):
    """A config field is unknown, of the wrong type, or has an impossible value."""


class DataError(UserError):
    """A data file is missing, malformed, or not what its checksum says."""


class CheckpointError(UserError):
    """A checkpoint is missing, damaged, or belongs to another model."""


class RunDirectoryError(UserError):
    """A run directory cannot be written, or holds another experiment."""
