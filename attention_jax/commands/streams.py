"""Standard streams: makes them UTF-8, and safe if they are closed, broken or full.

Text is UTF-8 in every locale, like all files that are read and written. The number of a closed
stream is taken at once: otherwise the next file to be opened would get it, and with it everything
that libraries print. Only the standard library is used, so that launchers can use it too.
"""

import io
import os
import sys
from collections.abc import Callable, Iterable

_replaced: list[object] = []  # the old streams: collected as garbage, they would close the numbers


class OutputError(Exception):
    """The standard output cannot be written; the message says why."""


def prepare(*, output_is_courtesy: bool = False) -> None:
    """Makes the standard streams of this process safe to use.

    What cannot be written to the standard error is dropped.

    Args:
      output_is_courtesy: Whether the same holds for the standard output. It does for a launcher,
        whose trainings should not end because nobody reads its output any more.

    Raises:
      OutputError: If the standard output is closed and not a courtesy.
    """
    closed = _take_closed_numbers()
    on_error = _lose if output_is_courtesy else _refuse
    _replaced.extend((sys.stdout, sys.stderr))
    sys.stdout = _text_stream(1, sys.stdout, on_error)
    sys.stderr = _text_stream(2, sys.stderr, _lose)
    if 1 in closed and not output_is_courtesy:
        raise OutputError("standard output: expected it open, found it closed")


def write(parts: Iterable[str]) -> None:
    """Prints parts of a text, each as soon as it is there."""
    for part in parts:
        print(part, end="", flush=True)


def discard_output() -> None:
    """Drops buffered output, which the interpreter would otherwise try to write when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class _Writer(io.FileIO):
    """A raw output stream with a handler for errors of writing."""

    def __init__(self, number: int, on_error: Callable[[OSError, int], int]):
        """Writes to an open descriptor, which stays open.

        Args:
          number: The descriptor.
          on_error: Handler that takes an error and the number of bytes, and raises or returns how
            many bytes count as written.
        """
        super().__init__(number, "w", closefd=False)
        self._on_error = on_error

    def write(self, data: bytes) -> int:
        try:
            return super().write(data)
        except OSError as error:
            return self._on_error(error, len(data))


def _lose(error: OSError, size: int) -> int:
    return size


def _refuse(error: OSError, size: int) -> int:
    if isinstance(error, BrokenPipeError):  # its reader has finished, which is no mistake
        raise error
    raise OutputError(f"standard output: expected it to take text ({error.strerror})") from None


def _take_closed_numbers() -> list[int]:
    """Opens the null device under the numbers of closed streams, and returns the numbers."""
    closed = []
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            taken = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this
            os.set_inheritable(taken, True)  # or a child process would find it closed again
            closed.append(number)
    return closed


def _text_stream(number: int, old: object, on_error: Callable) -> io.TextIOWrapper:
    is_line_buffered = number == 2 or getattr(old, "line_buffering", False)
    is_unbuffered = getattr(old, "write_through", False)
    return io.TextIOWrapper(
        io.BufferedWriter(_Writer(number, on_error)),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=is_line_buffered,
        write_through=is_unbuffered,
    )
