"""Errors that a user can mend: programs print them as one line and exit with code 2."""

import os
import re
import traceback
from typing import Any

_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST = 500  # characters of a message
_LONGEST_QUOTED = 80
# The words of all devices' allocators, and of NumPy for arrays that no machine could hold.
_OUT_OF_MEMORY = re.compile("RESOURCE_EXHAUSTED|array is too big|Maximum allowed dimension")
_NO_BACKEND = re.compile("Unable to initialize backend|Unknown backend")
_JAX_BACKENDS, _JAX_SETTINGS = "jax/_src/xla_bridge.py", "jax/_src/config.py"


class UserError(Exception):
    """What the user gave is wrong; the message says what, expected, found and where."""

    def __str__(self) -> str:
        """Returns the message in one line of moderate length, whatever it quotes."""
        # Names of files and values of configs may hold line breaks and control characters.
        line = _BREAKS.sub(lambda match: ascii(match[0])[1:-1], super().__str__())
        return _cut(line, _LONGEST)


def quoted(value: Any) -> str:
    """Returns a value as a message shows it: cut in its middle, whatever its own text is."""
    if isinstance(value, str) and len(value) > 2 * _LONGEST_QUOTED:
        # Cut before `repr`, which would write out megabytes first.
        value = value[:_LONGEST_QUOTED] + value[-_LONGEST_QUOTED:]
    try:
        text = repr(value)
    except Exception:  # of a hostile class, or a number of more digits than Python prints
        text = f"a value of type {type(value).__name__}"
    return _cut(text, _LONGEST_QUOTED)


def _cut(text: str, longest: int) -> str:
    """Leaves out the middle of a text that is too long: its end often says what to do."""
    if len(text) <= longest:
        return text
    end = longest // 3
    return f"{text[: longest - end - 3]}...{text[-end:]}"


class ConfigError(UserError):
    """A config field is unknown, of the wrong type, or has an impossible value."""


def at_field(where: str, error: Exception) -> ConfigError:
    """Returns what a part has raised with its place in the whole config.

    Args:
      where: Path of the part's group.
      error: What was raised, by code that knows not where it stands; its message begins with a
        field and a colon, or else the group is meant.
    """
    is_of_field = re.match(r"\w+(\[\d+\]|\.[^.:\[]+)*:", str(error))
    return ConfigError(f"{where}{'.' if is_of_field else ': '}{error}")


class SettingError(ConfigError, ValueError):
    """A config dataclass was given an impossible value, by code that knows not where it stands."""


class PartError(ConfigError):
    """A part of the user's own does not keep to what parts of its kind are, or return."""


class DataError(UserError):
    """A data file is missing, malformed, or not what its checksum says."""


class CheckpointError(UserError):
    """A checkpoint is missing, damaged, or belongs to another model."""


class DivergenceError(UserError):
    """A model gives losses or outputs that are not finite: its training has diverged."""


class RunDirectoryError(UserError):
    """A run directory cannot be written, or holds another experiment."""


def machine_message(error: Exception) -> str | None:
    """Out of memory or no such device: returns the message, or None for any other error."""
    text = " ".join(str(error).split()).removesuffix(".")
    if _OUT_OF_MEMORY.search(text) or isinstance(error, MemoryError):
        return f"{text or 'out of memory'}; smaller batches, beams or models take less"
    raised_in = _raised_in(error)
    if _NO_BACKEND.search(text) or raised_in.endswith(_JAX_BACKENDS):
        asked = os.environ.get("JAX_PLATFORMS", "")
        reason = f" ({text})" if text else ""
        return f"JAX_PLATFORMS: expected devices of this machine, found {quoted(asked)}{reason}"
    if raised_in.endswith(_JAX_SETTINGS):
        return f"a variable JAX_... of the environment: {text}"
    return None


def _raised_in(error: BaseException) -> str:
    """Returns the file whose code raised an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return frames[-1].filename.replace(os.sep, "/") if frames else ""
