"""The run directory of a command that is started and watched from outside."""

import pathlib
import re
from collections.abc import Sequence

from attention_jax.paths import expanded


def workdir_of(command: Sequence[str]) -> pathlib.Path | None:
    """Returns the `--workdir` of a command, or None if it has none.

    Raises:
      UserError: If it is an address, or begins with `~name` and there is no such user.
    """
    found = None
    for argument, following in zip(command, [*command[1:], ""], strict=True):
        if argument in ("--workdir", "-workdir"):
            found = following
        elif match := re.fullmatch(r"--?workdir=(.+)", argument, re.DOTALL):
            found = match[1]
    return expanded(found).absolute() if found else None
