"""What a program is called: `python -m launch.train` in the clone, `attention-train` elsewhere.

The standard library is enough, as in `children.py`.
"""

import pathlib
import re
import sys

_OF_THE_CLONE = re.compile(r"(?:python -m )?\blaunch(?:\.([a-z_]+)|/([a-z_]+)\.sh)")


def usage(text: str) -> str:
    """Returns a program's usage with the names by which it and its neighbours were called.

    Args:
      text: The usage, with the names of the clone.
    """
    if not pathlib.Path(sys.argv[0]).name.startswith("attention-"):
        return text
    return _OF_THE_CLONE.sub(lambda match: installed(match[1] or match[2]), text)


def installed(name: str) -> str:
    """Returns what a program is called where the package is installed."""
    return f"attention-{name.replace('_', '-')}"
