"""Parent death: a program that another one started ends with it, however that ended.

Who is killed (`kill -9`, or for want of memory) can tell its children nothing. They look whether it
is still there; nothing has to be done for it between fork and exec, as by Linux's own signal of it.
"""

import os
import signal
import threading
import time

_PARENT = "ATTENTION_JAX_PARENT"
_LOOK_EVERY_SECONDS = 0.5


def named_as_parent() -> dict[str, str]:
    """Returns the variable that has a program of ours, started by this process, end with it."""
    return {_PARENT: str(os.getpid())}


def end_with_parent() -> None:
    """Sends this process SIGTERM once the one that started it is gone, if that asked for it.

    A training saves and leaves then, as when it is told to stop.
    """
    # Taken away, for it is not the parent of what this process starts.
    parent = os.environ.pop(_PARENT, "")
    if parent.isdecimal():
        thread = threading.Thread(target=_watch, args=(int(parent),), name=_PARENT, daemon=True)
        thread.start()


def _watch(parent: int) -> None:
    # An orphan has another parent at once, whatever its own now does or whoever gets its number.
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
