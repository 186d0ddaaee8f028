"""Names of the programs: `python -m launch.train` in the clone, `attention-train` where installed.

Only the standard library is used, as in all of this package.
"""

import pathlib
import re
import sys

_OF_THE_CLONE = re.compile(r"(?:python -m )?\blaunch(?:\.([a-z_]+)|/([a-z_]+)\.sh)")


def usage(text: str) -> str:
    """Usage: returns a help text with the names of the programs as the user has called them.

    The `text` has the names of the clone.
    """
    if not _is_installed():
        return text
    return _OF_THE_CLONE.sub(lambda match: installed(match[1] or match[2]), text)


def installed(name: str) -> str:
    """Returns the name of a program where the package is installed."""
    return f"attention-{name.replace('_', '-')}"


def program(name: str) -> list[str]:
    """Returns the arguments by which Python starts another program, in the clone or installed."""
    if _is_installed():
        return [str(pathlib.Path(sys.argv[0]).with_name(installed(name)))]
    return ["-m", f"launch.{name}"]


def _is_installed() -> bool:
    # An installed program is started by a script whose name begins like this.
    return pathlib.Path(sys.argv[0]).name.startswith("attention-")
