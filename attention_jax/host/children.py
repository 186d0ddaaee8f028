"""Child processes that do not outlive their parent, and receive its signals exactly once.

Only the standard library is used: the programs that start children may run in any Python, outside
of the environment of the command that they start.
"""

import contextlib
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

_PR_SET_PDEATHSIG = 1  # of Linux's prctl.h
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
MISTAKE, FAILURE, RETRY, INTERRUPTED = 2, 1, 75, 130


def start(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    log: pathlib.Path | None = None,
) -> subprocess.Popen:
    """Starts a command in a session of its own, so that Ctrl-C reaches it only through us.

    On Linux, the child gets SIGTERM when this process dies, however it dies.

    Args:
      command: The program and its arguments.
      environment: Environment variables beside our own.
      log: File to which its output is appended; None for our own output.

    Raises:
      OSError: If there is no such program.
    """
    parent = os.getpid()

    def prepare() -> None:
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:  # it died before the request, which would never be answered
                os._exit(RETRY)

    with contextlib.ExitStack() as files:
        output = None if log is None else files.enter_context(log.open("ab"))
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            preexec_fn=prepare,
        )


@contextlib.contextmanager
def signals() -> Iterator[list[int]]:
    """Signal handling: collects SIGTERM and SIGINT in their order while the block runs."""
    received: list[int] = []
    old = {n: signal.signal(n, lambda number, frame: received.append(number)) for n in _SIGNALS}
    try:
        yield received
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def stop(child: subprocess.Popen, number: int) -> None:
    """Sends a signal to a child that still runs; SIGKILL to everything in its session."""
    with contextlib.suppress(ProcessLookupError):
        # A killed child cannot end its own children; other signals it can pass on itself.
        if number == signal.SIGKILL:
            os.killpg(child.pid, number)
        elif child.poll() is None:
            child.send_signal(number)


def exit_code(child: subprocess.Popen) -> int:
    """Exit code: returns that of an ended child as shells show it, such as 137 for SIGKILL."""
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def describe(code: int) -> str:
    """Describes an exit code in words."""
    if code > 128:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(code - 128).name}"
    return f"exit code {code}"


def split(arguments: Sequence[str], known: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Separates our own options from the command that follows them.

    Args:
      arguments: The arguments of our command line.
      known: Names of our options, each written `--NAME=VALUE`.

    Raises:
      ValueError: Naming an unknown option.
    """
    options: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        match = re.fullmatch(r"--(\w+)=(.*)", rest.pop(0), re.DOTALL)
        if match is None or match[1] not in known:
            names = ", ".join(f"--{name}=VALUE" for name in known)
            raise ValueError(f"expected one of {names} or a command, found {arguments[0]!r}")
        options[match[1]] = match[2]
    return options, rest
